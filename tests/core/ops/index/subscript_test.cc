#include "core/ops/index/subscript.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "core/base/error.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/literal.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

/// 0, 1, 2, ... in the shape [2, 3, 4].
Tensor numbers() { return view(arange(24), {2, 3, 4}); }

void expect_equal(const Tensor& got, const Tensor& wanted) {
  ASSERT_TRUE(same(got.sizes(), wanted.sizes())) << got.shape() << " is not " << wanted.shape();
  EXPECT_TRUE((got == wanted).sum().item<int64_t>() == wanted.numel());
}

TEST(Subscript, ANumberTakesARowAsAView) {
  const Tensor x = numbers();
  expect_equal(x[1][2], tensor({20, 21, 22, 23}));
  expect_equal(x[-1][0], tensor({12, 13, 14, 15}));
  EXPECT_TRUE(x[1].storage() == x.storage());
  expect_error<IndexError>([&] { (void)x[2]; }, "2");
}

TEST(Subscript, SlicesNoneAndEllipsisMeanWhatTheyDoInPython) {
  const Tensor x = numbers();
  expect_equal(x.index({0, Slice(1, 3), Slice(None, None, 2)}), tensor({{4, 6}, {8, 10}}));
  expect_equal(x.index({Ellipsis, -1}), tensor({{3, 7, 11}, {15, 19, 23}}));
  expect_equal(x.index({1, Ellipsis, Slice(3)}), tensor({{15}, {19}, {23}}));
  expect_equal(x.index({Slice(), 0, 0}), tensor({0, 12}));
  expect_equal(x.index({0, None, 1, Ellipsis, None}), tensor({{{4}, {5}, {6}, {7}}}));
  expect_equal(x.index({1, 2, 3, Ellipsis}), tensor(23));
  expect_equal(x.index({0, 0, Slice(-2, 100)}), tensor({2, 3}));
  EXPECT_TRUE(x.index({Ellipsis, 1}).storage() == x.storage());
}

TEST(Subscript, TensorsGather) {
  const Tensor x = numbers();
  expect_equal(x[tensor({1, 0})][0][0], tensor({12, 13, 14, 15}));
  expect_equal(x.index({0, tensor({2, 0}), tensor({1, 3})}), tensor({9, 3}));
  // Indices that are not neighbours: their dimension comes first.
  expect_equal(x.index({tensor({0, 1}), Slice(0, 2), tensor({0, 3})}), tensor({{0, 4}, {15, 19}}));
  expect_equal(x.index({Slice(), tensor({2}), Slice(2)}), tensor({{{10, 11}}, {{22, 23}}}));
  expect_equal(x[tensor(1)][0], x[1][0]);
  EXPECT_TRUE(x[tensor(1)].storage() == x.storage());
}

TEST(Subscript, MasksTakeWhatIsTrue) {
  const Tensor x = numbers();
  expect_equal(x[x > 21], tensor({22, 23}));
  const Tensor mask = tensor({{true, false, false}, {false, false, true}});
  expect_equal(x[mask], tensor({{0, 1, 2, 3}, {20, 21, 22, 23}}));
  expect_equal(x.index({mask, Slice(1, 3)}), tensor({{1, 2}, {21, 22}}));
  expect_equal(x.index({mask, None, 0}), tensor({{0}, {20}}));
  expect_equal(x.index({Ellipsis, tensor({true, false, false, true})})[0][0], tensor({0, 3}));
  EXPECT_EQ(x.index({true}).shape(), "[1, 2, 3, 4]");
  EXPECT_EQ(x.index({0, false}).shape(), "[0, 3, 4]");
  EXPECT_EQ(x[tensor(true)].shape(), "[1, 2, 3, 4]");
}

TEST(Subscript, WritesReachTheTensor) {
  const Tensor x = zeros({2, 3}, DType::kI64);
  x.index_put_({0, Slice(1, 3)}, tensor({5, 6}));
  x.index_put_({1}, 7);
  expect_equal(x, tensor({{0, 5, 6}, {7, 7, 7}}));
  x.index_put_({tensor({1, 0}), tensor({0, 0})}, tensor({1, 2}));
  expect_equal(x, tensor({{2, 5, 6}, {1, 7, 7}}));
  x.index_put_({x > 5}, -1);
  expect_equal(x, tensor({{2, 5, -1}, {1, -1, -1}}));
  x.index_put_({tensor({0, 1}), Slice(2)}, tensor({{8}, {9}}));
  expect_equal(x, tensor({{2, 5, 8}, {1, -1, 9}}));
}

TEST(Subscript, ValuesAreBroadcastAndCast) {
  const Tensor x = zeros({2, 2});
  x.index_put_({Ellipsis, 1}, tensor({{{3, 4}}}));
  x.index_put_({tensor({0}), tensor({0})}, tensor({2.5}, DType::kF64));
  expect_equal(x, tensor({{2.5, 3.0}, {0.0, 4.0}}));
  EXPECT_THROW(x.index_put_({0}, tensor({1, 2, 3})), ShapeError);
}

TEST(Subscript, AssignmentToASubscriptWritesAndToANameDoesNot) {
  const Tensor x = zeros({2, 2});
  x[0] = tensor({1.0, 2.0});
  x[1][1] = 3;
  expect_equal(x, tensor({{1.0, 2.0}, {0.0, 3.0}}));
  Tensor row = x[0];
  row = tensor({9.0, 9.0});
  expect_equal(x[0], tensor({1.0, 2.0}));
}

TEST(Subscript, GradientsReachWhatWasRead) {
  const Tensor x = ones({2, 3});
  x.set_requires_grad();
  (x[0] * 2 + x.index({1, tensor({0, 0, 2})})).sum().backward();
  expect_equal(x.grad(), tensor({{2.0, 2.0, 2.0}, {2.0, 0.0, 1.0}}));
}

TEST(Subscript, WhatCannotBeMeantIsRefused) {
  const Tensor x = numbers();
  expect_error<IndexError>(
      [&] {
        x.index({0, 0, 0, 0});
      },
      "too many indices", "at most 3", "got 4");
  expect_error<IndexError>([&] { x.index({Ellipsis, Ellipsis}); }, "one Ellipsis");
  expect_error<IndexError>([&] { x[tensor({true, false, true})]; }, "mask");
  EXPECT_THROW(x.index({Slice(0, 2, 0)}), Error);
  EXPECT_THROW(x[tensor({0.5})], DTypeError);
  EXPECT_THROW(tensor(1)[0], IndexError);
}

TEST(Subscript, IterationGivesTheRows) {
  std::vector<int64_t> sums;
  for (const Tensor& row : tensor({{1, 2}, {3, 4}, {5, 6}}))
    sums.push_back(row.sum().item<int64_t>());
  EXPECT_EQ(sums, (std::vector<int64_t>{3, 7, 11}));
  const Tensor x = zeros({2, 2});
  for (const Tensor& row : x) row.fill_(1);
  expect_equal(x, ones({2, 2}));
  for (const Tensor& row : zeros({0, 2})) FAIL() << row.shape();
  expect_error<ShapeError>(
      [] {
        for (const Tensor& row : tensor(1)) FAIL() << row.shape();
      },
      "0-d");
}

}  // namespace
}  // namespace lockstep
