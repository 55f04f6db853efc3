#pragma once

#include "core/cuda/fault.h"
#include "core/dtype.h"
#include "kernels/cuda/cutter.h"
#include "kernels/pool_axis.h"

namespace lockstep::cuda {

/// A call of a pooling operator over planes of up to three dimensions, contiguous.
struct Pool {
  const void* from;
  void* to;
  int64_t* indices;  ///< of max pools: places in the input's plane
  PoolAxis axes[3];
  int64_t numel;       ///< of `to`
  Cutter plane;        ///< cuts elements of `to` into planes,
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
