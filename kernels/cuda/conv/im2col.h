#pragma once

#include "kernels/cuda/index_splitter.h"

namespace lockstep::cuda {

/// Windows of image planes and the columns of their elements [planes, kernel, counts], where kernel
/// and counts have two dimensions. `to` is the columns for im2col and the images for col2im.
struct Im2col {
  const void* from;
  void* to;
  int64_t numel;  ///< elements of `to`
  int64_t image[2], kernel[2], dilation[2], padding[2], stride[2], counts[2];
  IndexSplitter plane, row;  ///< split indices of `to` into planes, and these into rows
  IndexSplitter tap,
      tap_row;  ///< im2col: split a plane's rows into kernel positions and their rows
};

}  // namespace lockstep::cuda
