#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep::cuda {

/// A matrix, or one per member of a batch, with any strides.
struct MatmulOperand {
  const void* data = nullptr;
  int64_t row = 0;
  int64_t column = 0;
  int64_t batch = 0;
};

/// What the kernels matmul_<dtype> get: result = alpha a b + beta addend, of a [m, k] and b [k, n].
/// Each block computes tiles of kTile by kTile elements; each element adds its k terms in order, so
/// its bits depend on nothing but its row and its column. Without `adds` the addend is not read.
struct MatmulTiles {
  static constexpr int64_t kTile = 64;   ///< rows and columns of a tile
  static constexpr int64_t kDepth = 16;  ///< how much of k is in shared memory at once
  static constexpr int kThreads = 256;   ///< each computes 4 by 4 elements

  MatmulOperand a;
  MatmulOperand b;
  MatmulOperand addend;
  void* result = nullptr;
  int64_t ld = 0;
  int64_t batch_stride = 0;
  int64_t batch = 0;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  double alpha = 1;  ///< of floating dtypes
  double beta = 0;
  int64_t integer_alpha = 1;  ///< of integers
  int64_t integer_beta = 0;
  bool adds = false;

  LS_HOST_DEVICE int64_t across() const { return (n + kTile - 1) / kTile; }
  LS_HOST_DEVICE int64_t down() const { return (m + kTile - 1) / kTile; }
  LS_HOST_DEVICE int64_t tiles() const { return across() * down() * batch; }
  /// Blocks that go over the tiles; more than these would only wait for each other.
  unsigned blocks() const {
    return static_cast<unsigned>(std::min<int64_t>(tiles(), int64_t{1} << 20));
  }
};

}  // namespace lockstep::cuda
