#pragma once

#include "core/cuda/fault.h"
#include "core/tensor/dtype.h"
#include "kernels/common/pool_axis.h"
#include "kernels/cuda/index_splitter.h"

namespace lockstep::cuda {

/// Arguments of a pooling operator over planes of up to three dimensions. In row-major layout each
/// plane is contiguous and a sample of its own; in channels-last layout the planes of a sample are
/// interleaved.
struct Pool {
  const void* from;
  void* to;
  int64_t* indices;  ///< max pools: offsets within the input's plane
  PoolAxis axes[3];
  int64_t numel;              ///< elements of `to`
  int64_t channels;           ///< interleaved planes per sample
  IndexSplitter sample;       ///< splits indices of `to` into samples,
  IndexSplitter lane;         ///< those into positions and planes,
  IndexSplitter slice, line;  ///< and positions into coordinates
  int64_t from_plane;         ///< elements per plane of `from`
  int64_t divisor;            ///< divides a mean instead of the window's count; 0: not given
  bool has_divisor;
  DType dtype;  ///< for kernels that dispatch on it at run time
  /// max pools, backward: set for each plane in which some index lies outside its window.
  int32_t* has_stray_index;
  int64_t planes;
  Fault* fault;
};

}  // namespace lockstep::cuda
