#pragma once

#include "kernels/cuda/cutter.h"

namespace lockstep::cuda {

/// Windows of image planes, and columns of their elements: [planes, kernel, counts], each of two
/// dimensions. `to` is the columns, or backward (col2im) the images.
struct Im2col {
  const void* from;
  void* to;
  int64_t numel;  ///< of `to`
  int64_t image[2], kernel[2], dilation[2], padding[2], stride[2], counts[2];
  Cutter plane, row;    ///< cut elements of `to` into planes, and these into rows of places
  Cutter tap, tap_row;  ///< forward: cut a plane's rows into kernel elements and their rows
};

}  // namespace lockstep::cuda
