#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Conversion between images and the windows that a convolution reads. All lists are (height,
// width).

/// [N, C, H, W] -> [N, C kh kw, L]: column l holds the l-th window, windows in row-major order of
/// their positions. N is optional.
Tensor im2col(const Tensor& self, IntList kernel_size, IntList dilation, IntList padding,
              IntList stride);
/// [N, C kh kw, L] -> [N, C, H, W] with (H, W) = `output_size`: elements of windows that share a
/// pixel are added. N is optional.
Tensor col2im(const Tensor& self, IntList output_size, IntList kernel_size, IntList dilation,
              IntList padding, IntList stride);

}  // namespace lockstep
