#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/dtype.h"
#include "kernels/cuda/norm/norm.h"

namespace lockstep::cuda {

/// Arguments of the forward kernels of stream_norm and stream_sum_norm. Stream, sum, parameters and
/// statistics are f32, or all are f64. Absent tensors are null.
struct StreamNormRows {
  const void* x;
  const void* branch;
  void* sum;  ///< x + branch
  void* y;
  const void* weight;
  const void* bias;
  NormVector mean;
  NormVector rstd;
  DType branch_dtype;
  DType y_dtype;
  int64_t rows;
  int64_t n;
  double eps;
  bool centre;
};

/// Arguments of the backward kernels: one pass computes dx and the parameters' partial sums over
/// groups of rows, one group per block.
struct StreamNormBackward {
  const void* grad;
  const void* carried;  ///< added to dx; may be null
  const void* x;
  const void* weight;
  NormVector mean;
  NormVector rstd;
  void* dx;
  void* narrow;          ///< dx again, in narrow_dtype
  void* partial_weight;  ///< [groups, n]; null if not wanted
  void* partial_bias;
  DType grad_dtype;
  DType narrow_dtype;
  int64_t rows;
  int64_t n;
  int64_t group;  ///< rows per group
  bool centre;
};

/// How the backward kernels share a row among the threads of a block, which holds it in registers.
struct StreamNormColumns {
  static constexpr int64_t kMostThreads = 512;

  enum class Kind : uint8_t {
    kPacks,    ///< packs of 4 columns
    kColumns,  ///< single columns, where rows are not aligned or f64
    kStream,   ///< long rows, read from memory in each pass
  };
  Kind kind = Kind::kStream;
  int each = 1;  ///< packs or columns of a thread
  unsigned threads = 256;
};

/// `aligned`: all rows of all tensors start at packs of 4 elements.
constexpr StreamNormColumns stream_norm_columns(DType dtype, int64_t n, bool aligned) {
  using Kind = StreamNormColumns::Kind;
  const bool packs = aligned && dtype == DType::kF32;
  const int64_t parts = packs ? n / 4 : n;
  for (const int each : {1, 2, 4}) {
    if (each == 2 && !packs) continue;
    const int64_t threads = (parts + each - 1) / each;
    if (threads <= StreamNormColumns::kMostThreads) {
      return {packs ? Kind::kPacks : Kind::kColumns, each,
              static_cast<unsigned>((threads + 31) / 32 * 32)};
    }
  }
  return {};
}

/// Rows per group: as many groups as blocks of so many threads are resident on a large GPU, of 132
/// processors with 1024 threads each. The same on every device, since the order of the sums depends
/// on it.
constexpr int64_t stream_norm_group(int64_t rows, int64_t threads) {
  constexpr int64_t kLeastRows = 8;
  const int64_t groups = 132 * std::clamp<int64_t>(1024 / threads, 1, 16);
  return std::max(kLeastRows, (rows + groups - 1) / groups);
}

}  // namespace lockstep::cuda
