#include "nn/run_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/allocator.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep::nn {
namespace {

using ::testing::ElementsAre;

RecomputeOptions blocks(int64_t count) { return {.what = Recompute::kBlock, .blocks = count}; }

/// The blocks that ran in forward and in backward, for `count` blocks that compute exp.
std::pair<std::vector<size_t>, std::vector<size_t>> trace(size_t count,
                                                          const RecomputeOptions& recompute) {
  std::vector<size_t> ran;
  const Tensor x = full({}, -1.0).set_requires_grad();
  const Tensor y = run_blocks(count, recompute, x, [&ran](size_t i, const Tensor& input) {
    ran.push_back(i);
    return input.exp();
  });
  std::vector<size_t> forward;
  ran.swap(forward);
  y.backward();
  return {forward, ran};
}

TEST(RunBlocks, WithoutCheckpointsEachRunsOnce) {
  const auto [forward, backward] = trace(3, {});
  EXPECT_THAT(forward, ElementsAre(0, 1, 2));
  EXPECT_THAT(backward, ElementsAre());
}

TEST(RunBlocks, ACheckpointIsSoManyBlocksTheLastMaybeFewer) {
  const auto [forward, backward] = trace(5, blocks(2));
  EXPECT_THAT(forward, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(backward, ElementsAre(4, 2, 3, 0, 1));
  EXPECT_THAT(trace(2, blocks(7)).second, ElementsAre(0, 1));
}

TEST(RunBlocks, CheaplyEachBlockRunsAgain) {
  const RecomputeOptions cheap{.what = Recompute::kCheap, .blocks = 2};
  EXPECT_THAT(trace(3, cheap).second, ElementsAre(2, 1, 0));
}

TEST(RunBlocks, KeepsTheInputsOfCheckpointsOnly) {
  const Tensor x = zeros({1 << 12}).set_requires_grad();
  const auto kept = [&](const RecomputeOptions& recompute) {
    const int64_t before = allocator(kCPU).stats().allocated;
    const Tensor y = run_blocks(
        4, recompute, x, [](size_t, const Tensor& input) { return input.exp().exp().exp(); });
    return (allocator(kCPU).stats().allocated - before) / static_cast<int64_t>(x.nbytes());
  };
  EXPECT_EQ(kept({}), 12);
  EXPECT_EQ(kept(blocks(1)), 4);  // the inputs of blocks 1, 2 and 3, and y; x is alive anyway
  EXPECT_EQ(kept(blocks(2)), 2);
  EXPECT_EQ(kept({.what = Recompute::kCheap}), 4) << "no product";
}

}  // namespace
}  // namespace lockstep::nn
