#pragma once

#include "kernels/common/pad_border.h"
#include "kernels/cuda/cutter.h"

namespace lockstep::cuda {

/// Padding of planes of up to three dimensions by what they hold; contiguous. Forward, `to` is
/// padded; backward, `from`.
struct Pad {
  const void* from;
  void* to;
  int64_t numel;       ///< of `to`
  Cutter plane;        ///< cuts elements of `to` into planes,
  Cutter slice, line;  ///< and places of a plane
  int64_t from_plane;  ///< elements of a plane of `from`
  int64_t size[3];     ///< of an unpadded plane
  int64_t padded[3];   ///< of a padded one
  int64_t before[3];
  PadBorder border;
};

}  // namespace lockstep::cuda
