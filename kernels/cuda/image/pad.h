#pragma once

#include "kernels/common/pad_border.h"
#include "kernels/cuda/index_splitter.h"

namespace lockstep::cuda {

/// Reflection or replication padding of contiguous planes of up to three dimensions. Forward, `to`
/// is the padded tensor; backward, `from` is.
struct Pad {
  const void* from;
  void* to;
  int64_t numel;              ///< elements of `to`
  IndexSplitter plane;        ///< splits indices of `to` into planes,
  IndexSplitter slice, line;  ///< and positions in a plane into coordinates
  int64_t from_plane;         ///< elements per plane of `from`
  int64_t size[3];            ///< sizes of an unpadded plane
  int64_t padded[3];          ///< sizes of a padded plane
  int64_t before[3];
  PadBorder border;
};

}  // namespace lockstep::cuda
