#pragma once

#include <cstdint>

// Parameters of the kernels of rms_normalize.cu.

namespace rms_normalize {

constexpr unsigned kThreads = 256;
constexpr int64_t kMostBlocks = 256;

/// Parameters of the kernel that sums squares, one sum per block.
struct SquareSums {
  const float* in;
  float* sums;
  int64_t count;
};

struct Scaling {
  const float* in;
  float* out;
  int64_t count;
  const float* sums;
  int64_t sum_count;
  float eps;
};

/// Number of blocks for `count` elements; each thread processes several.
constexpr unsigned blocks_for(int64_t count) {
  const int64_t wanted = (count + 4 * kThreads - 1) / (4 * kThreads);
  return static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
}

}  // namespace rms_normalize
