// Reductions over warps and blocks, called from test kernels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/emulation/device.h"
// After device.h, whose definitions it uses in place of its own.
#include "kernels/cuda/block_reduce.cuh"

namespace lockstep::cuda {
namespace {

using ::testing::Each;

struct Join {
  const float* in;
  float* out;  ///< one per thread
};

LS_CUDA_KERNEL(block_reduce_sum, Join, 1024) { p.out[threadIdx.x] = block_sum(p.in[threadIdx.x]); }
LS_CUDA_KERNEL(block_reduce_twice, Join, 1024) {
  // The second reduction must not overwrite what slower warps still read from the first.
  const float sum = block_sum(p.in[threadIdx.x]);
  p.out[threadIdx.x] = sum - block_sum(p.in[threadIdx.x] + 1.0F);
}
LS_CUDA_KERNEL(block_reduce_largest, Join, 1024) {
  p.out[threadIdx.x] = block_largest(p.in[threadIdx.x]);
}
LS_CUDA_KERNEL(block_reduce_eights, Join, 32) {
  p.out[threadIdx.x] = warp_join<SumOf<float>, 8>(p.in[threadIdx.x]);
}

/// Index of the largest element: a reduction state of several words.
struct Place {
  double value;
  int64_t index;
};
struct LargestPlace {
  using Element = Place;
  static Place combine(const Place& a, const Place& b) { return b.value > a.value ? b : a; }
};
LS_CUDA_KERNEL(block_reduce_place, Join, 1024) {
  const Place place = block_join<LargestPlace>({p.in[threadIdx.x], threadIdx.x});
  p.out[threadIdx.x] = static_cast<float>(place.index);
}

std::vector<float> run(const char* kernel, const std::vector<float>& in) {
  std::vector<float> out(in.size());
  const Join parameters{in.data(), out.data()};
  emulation::Launch launch;
  launch.kernel = emulation::find_kernel(kernel);
  launch.parameters = &parameters;
  launch.threads.x = static_cast<unsigned>(in.size());
  emulation::run(launch);
  return out;
}

std::vector<float> counted(size_t n) {
  std::vector<float> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return numbers;
}

TEST(BlockReduce, EveryThreadGetsTheSumOfTheBlock) {
  for (const size_t n : {32, 64, 256, 1024}) {
    const auto want = static_cast<float>(n * (n - 1) / 2);
    EXPECT_THAT(run("block_reduce_sum", counted(n)), Each(want));
    EXPECT_THAT(run("block_reduce_twice", counted(n)), Each(-static_cast<float>(n)));
  }
}

TEST(BlockReduce, NanIsTheLargest) {
  std::vector<float> numbers = counted(256);
  EXPECT_THAT(run("block_reduce_largest", numbers), Each(255));
  numbers[77] = std::numeric_limits<float>::quiet_NaN();
  for (const float largest : run("block_reduce_largest", numbers)) {
    EXPECT_TRUE(std::isnan(largest));
  }
}

TEST(BlockReduce, PartsOfAWarpJoinAmongThemselves) {
  const std::vector<float> sums = run("block_reduce_eights", counted(32));
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(sums[i], static_cast<float>(i / 8 * 64 + 28)) << i;
  }
}

TEST(BlockReduce, StatesOfSeveralWordsStayTogether) {
  std::vector<float> numbers = counted(256);
  numbers[131] = 1000;
  EXPECT_THAT(run("block_reduce_place", numbers), Each(131));
}

}  // namespace
}  // namespace lockstep::cuda
