#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Convolutions over one to three spatial dimensions (mathematically cross-correlations, as usual in
// deep learning). input [batch, channels, spatial...], weight [features, channels / groups,
// kernel...], bias [features]; all of one dtype, any but bool.
//
//   out[n, f, o] = bias[f] + sum over c, k of weight[f, c, k] input[n, c, o stride - padding + k
//                  dilation]
//
// where group g of the features reads group g of the channels and the input is padded with 0. A
// transposed convolution is the gradient of a convolution with respect to its input; its weight is
// [channels, features / groups, kernel...]. Several output sizes fit one input size then, and
// `output_padding` selects one of them; otherwise it is 0. Lists hold one number per spatial
// dimension, or one for all. Results are row-major, and their bits do not depend on the number of
// threads. f16 and bf16 sum in f32 and round once.

/// The convolution of `input`, transposed if `transposed`.
Tensor convolution(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                   IntList padding, IntList dilation, bool transposed, IntList output_padding,
                   int64_t groups);
/// Gradients of input, weight and bias of `convolution`; those not selected by `output_mask` are
/// undefined. `bias_sizes` is ignored. Floating dtypes only.
std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad_output, const Tensor& input, const Tensor& weight,
    std::optional<IntList> bias_sizes, IntList stride, IntList padding, IntList dilation,
    bool transposed, IntList output_padding, int64_t groups, BoolList output_mask);

// `convolution` with a fixed number of spatial dimensions. The input may lack the batch dimension;
// the result lacks it then, too.

Tensor conv1d(const Tensor& input, const Tensor& weight, OptionalTensor bias = {},
              IntList stride = {1}, IntList padding = {0}, IntList dilation = {1},
              int64_t groups = 1);
Tensor conv2d(const Tensor& input, const Tensor& weight, OptionalTensor bias = {},
              IntList stride = {1, 1}, IntList padding = {0, 0}, IntList dilation = {1, 1},
              int64_t groups = 1);
Tensor conv3d(const Tensor& input, const Tensor& weight, OptionalTensor bias = {},
              IntList stride = {1, 1, 1}, IntList padding = {0, 0, 0}, IntList dilation = {1, 1, 1},
              int64_t groups = 1);
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, OptionalTensor bias = {},
                        IntList stride = {1}, IntList padding = {0}, IntList output_padding = {0},
                        int64_t groups = 1, IntList dilation = {1});
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, OptionalTensor bias = {},
                        IntList stride = {1, 1}, IntList padding = {0, 0},
                        IntList output_padding = {0, 0}, int64_t groups = 1,
                        IntList dilation = {1, 1});
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, OptionalTensor bias = {},
                        IntList stride = {1, 1, 1}, IntList padding = {0, 0, 0},
                        IntList output_padding = {0, 0, 0}, int64_t groups = 1,
                        IntList dilation = {1, 1, 1});

}  // namespace lockstep
