#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep::cuda {

/// A matrix with any strides, or one per batch entry.
struct MatmulOperand {
  const void* data = nullptr;
  int64_t row = 0;
  int64_t column = 0;
  int64_t batch = 0;
};

/// Arguments of the kernels matmul_<dtype>, and matmul_<dtype>_wide with result and addend in f32:
/// result = alpha a b + beta addend, for a [m, k] and b [k, n]. Each block computes tiles of kTile
/// by kTile elements; each element adds its k terms in order, so its bits depend only on its row
/// and column. The addend is read only if `adds`.
struct MatmulTiles {
  static constexpr int64_t kTile = 64;   ///< rows and columns of a tile
  static constexpr int64_t kDepth = 16;  ///< extent of k in shared memory at a time
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
  double alpha = 1;  ///< for floating dtypes
  double beta = 0;
  int64_t integer_alpha = 1;  ///< for integers
  int64_t integer_beta = 0;
  bool adds = false;

  LS_HOST_DEVICE int64_t across() const { return (n + kTile - 1) / kTile; }
  LS_HOST_DEVICE int64_t down() const { return (m + kTile - 1) / kTile; }
  LS_HOST_DEVICE int64_t tiles() const { return across() * down() * batch; }
  /// Number of blocks that iterate over the tiles, capped since more would only queue.
  unsigned blocks() const {
    return static_cast<unsigned>(std::min<int64_t>(tiles(), int64_t{1} << 20));
  }
};

}  // namespace lockstep::cuda
