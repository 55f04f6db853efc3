#pragma once

#include "core/cuda/fault.h"
#include "core/tensor/dtype.h"
#include "kernels/common/pool_axis.h"
#include "kernels/cuda/cutter.h"

namespace lockstep::cuda {

/// A call of a pooling operator over planes of up to three dimensions. Those of row-major images
/// are contiguous, each a sample on its own; where channels are innermost, a sample's lie side by
/// side.
struct Pool {
  const void* from;
  void* to;
  int64_t* indices;  ///< of max pools: places in the input's plane
  PoolAxis axes[3];
  int64_t numel;       ///< of `to`
  int64_t channels;    ///< planes side by side
  Cutter sample;       ///< cuts elements of `to` into samples,
  Cutter lane;         ///< those of a sample into places of all its planes,
  Cutter slice, line;  ///< and places of a plane
  int64_t from_plane;  ///< elements of a plane of `from`
  int64_t divisor;     ///< of a mean, in place of the window's count; 0: none was given
  bool has_divisor;
  DType dtype;  ///< for kernels that look it up
  /// max pools, backward: for each plane whether some index is of no place of its window.
  int32_t* strays;
  int64_t planes;
  Fault* fault;
};

}  // namespace lockstep::cuda
