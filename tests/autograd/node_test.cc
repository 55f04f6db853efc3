#include "autograd/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_formula.h"
#include "core/ops/reduce/reduce.h"
#include "tests/autograd/sample_operators.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using ::testing::ElementsAre;

TEST(Node, HasTheFieldsName) {
  const Tensor x = sample::matrix(2, 2);
  EXPECT_EQ(addmm(x, x, x).grad_fn()->name(), "AddmmBackward0");
  EXPECT_EQ((x * x).grad_fn()->name(), "MulBackward0");
  EXPECT_EQ((x * 2).grad_fn()->name(), "MulBackward1");
  EXPECT_EQ(pow(x, 2).grad_fn()->name(), "PowBackward0");
  EXPECT_EQ(pow(x, x).grad_fn()->name(), "PowBackward1");
  EXPECT_EQ(pow(2, x).grad_fn()->name(), "PowBackward2");
  EXPECT_EQ(x.sum().grad_fn()->name(), "SumBackward0");
  EXPECT_EQ(x.sum({0}).grad_fn()->name(), "SumBackward1");
  EXPECT_EQ(x.t().grad_fn()->name(), "TBackward0");
  EXPECT_EQ(x.split(1)[0].grad_fn()->name(), "SplitBackward0");
  EXPECT_EQ(x.grad_fn(), nullptr);
}

TEST(Node, EdgesLeadToTheArgumentsNodes) {
  const Tensor x = sample::matrix(2, 2);
  const Tensor c = sample::matrix(2, 2, false);
  const Tensor loss = addmm(c, x, x.t()).sum();
  const Node* sum = loss.grad_fn();
  ASSERT_EQ(sum->next_edges().size(), 1u);
  const Node* product = sum->next_edges()[0].node.get();
  EXPECT_EQ(product->name(), "AddmmBackward0");
  ASSERT_EQ(product->next_edges().size(), 3u);
  EXPECT_FALSE(product->next_edges()[0]);
  EXPECT_EQ(product->next_edges()[1].node->name(), "AccumulateGrad");
  EXPECT_EQ(product->next_edges()[2].node->name(), "TBackward0");
  EXPECT_GT(sum->sequence(), product->sequence());
}

TEST(Node, ALeafHasOneSinkForItsLife) {
  const Tensor x = leaf({1});
  const Tensor a = x * 2;
  const Node* sink = a.grad_fn()->next_edges()[0].node.get();
  EXPECT_EQ((x + 1).grad_fn()->next_edges()[0].node.get(), sink);
}

TEST(Node, ResultsOfOneOperatorAreNumbered) {
  const Tensor x = leaf({1, 2, 3, 4});
  const std::vector<Tensor> parts = x.split(2);
  const Tensor y = parts[1] * 2;
  EXPECT_EQ(y.grad_fn()->next_edges()[0].node.get(), parts[0].grad_fn());
  EXPECT_EQ(y.grad_fn()->next_edges()[0].input_nr, 1u);
  EXPECT_EQ(parts[0].grad_fn()->outputs().size(), 2u);
}

constexpr int kDeep = 150'000;

TEST(DeepGraph, RunsAndIsFreedWithoutRecursion) {
  const Tensor x = leaf({1});
  {
    Tensor y = x;
    for (int i = 0; i < kDeep; ++i) y = y + 1;
    y.backward();
  }
  EXPECT_THAT(elements(x.grad()), ElementsAre(1));
}

TEST(DeepGraph, IsFreedWithoutRunning) {
  const Tensor x = leaf({1});
  const int64_t before = allocator(kCPU).stats().allocated;
  {
    Tensor y = x;
    for (int i = 0; i < kDeep; ++i) y = y * x;  // saves every intermediate result
    EXPECT_GT(allocator(kCPU).stats().allocated, before);
  }
  EXPECT_EQ(allocator(kCPU).stats().allocated, before);
}

TEST(DeepGraph, OfInPlaceChangesIsFreedToo) {
  const Tensor x = leaf({1});
  const Tensor y = x * 1;
  for (int i = 0; i < kDeep; ++i) add_(y, 1);
  y.backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(1));
}

}  // namespace
}  // namespace lockstep
