#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

const Tensor& col2im_out(const Tensor& out, const Tensor& self, IntList output_size,
                         IntList kernel_size, IntList dilation, IntList padding, IntList stride);
Tensor conv1d(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
              std::string_view padding, IntList dilation = {1}, int64_t groups = 1);
Tensor conv2d(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
              std::string_view padding, IntList dilation = {1, 1}, int64_t groups = 1);
Tensor conv3d(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
              std::string_view padding, IntList dilation = {1, 1, 1}, int64_t groups = 1);
const Tensor& convolution_out(const Tensor& out, const Tensor& input, const Tensor& weight,
                              OptionalTensor bias, IntList stride, IntList padding,
                              IntList dilation, bool transposed, IntList output_padding,
                              int64_t groups);
const Tensor& im2col_out(const Tensor& out, const Tensor& self, IntList kernel_size,
                         IntList dilation, IntList padding, IntList stride);

}  // namespace lockstep
