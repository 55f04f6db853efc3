#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Convolutions over one to three spatial dimensions: as everywhere in the field, what mathematics
// calls cross-correlation. input [batch, channels, spatial...], weight [features, channels /
// groups, kernel...], bias [features]; all of one dtype, any but bool.
//
//   out[n, f, o] = bias[f] + sum over c, k of weight[f, c, k] input[n, c, o stride - padding + k
//                  dilation]
//
// where group g of the features sees group g of the channels and the input is 0 outside itself. A
// transposed convolution is the gradient of such a one with respect to its input; its weight is
// [channels, features / groups, kernel...]. `output_padding` then says which of the sizes that one
// stride maps to the same is meant, and is 0 otherwise. Lists hold one number per spatial
// dimension, or one for all. Results are row-major, and their bits do not depend on the number of
// threads. f16 and bf16 sum in f32 and round once.

/// Forward: a new tensor.
Tensor convolution(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                   IntList padding, IntList dilation, bool transposed, IntList output_padding,
                   int64_t groups);
/// Gradients of input, weight and bias of `convolution`, each computed where `output_mask` says so,
/// else undefined. `bias_sizes` is not read. Floating dtypes only.
std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad_output, const Tensor& input, const Tensor& weight,
    std::optional<IntList> bias_sizes, IntList stride, IntList padding, IntList dilation,
    bool transposed, IntList output_padding, int64_t groups, BoolList output_mask);

// `convolution` of a known number of spatial dimensions. The batch may be missing from the input;
// it is then missing from the result too.

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
