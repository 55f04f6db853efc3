#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Normalisation over the last dimensions, `normalized_shape` = input.sizes()[k..]. Statistics are
// kept in f32 (f64 for f64 input), one per row, with the shape [leading sizes..., 1, ..., 1].
// Weight and bias have the shape `normalized_shape`. All results have the same bits for any number
// of threads.

/// (input - mean) / sqrt(var + eps) * weight + bias; var is the biased variance. Ba et al. 2016.
Tensor layer_norm(const Tensor& input, IntList normalized_shape, OptionalTensor weight = {},
                  OptionalTensor bias = {}, double eps = 1e-5);
/// The fused kernel behind layer_norm: result, mean and 1 / sqrt(var + eps).
std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, IntList normalized_shape,
                                                     OptionalTensor weight, OptionalTensor bias,
                                                     double eps);
/// Gradients of input, weight and bias; those not selected by `output_mask` are undefined.
std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(
    const Tensor& grad_out, const Tensor& input, IntList normalized_shape, const Tensor& mean,
    const Tensor& rstd, OptionalTensor weight, OptionalTensor bias, BoolList output_mask);

/// input / sqrt(mean(input^2) + eps) * weight. eps defaults to the dtype's machine epsilon.
/// Zhang & Sennrich 2019.
Tensor rms_norm(const Tensor& input, IntList normalized_shape, OptionalTensor weight = {},
                std::optional<double> eps = std::nullopt);
/// The fused kernel behind rms_norm: result and 1 / sqrt(mean(input^2) + eps).
std::tuple<Tensor, Tensor> fused_rms_norm(const Tensor& input, IntList normalized_shape,
                                          OptionalTensor weight, std::optional<double> eps);
/// Gradients of input and weight; those not selected by `output_mask` are undefined.
std::tuple<Tensor, Tensor> fused_rms_norm_backward(const Tensor& grad_out, const Tensor& input,
                                                   IntList normalized_shape, const Tensor& rstd,
                                                   OptionalTensor weight, BoolList output_mask);

/// Normalises the channels of input [n, channels, ...] in `num_groups` groups, each over its
/// channels and positions: (input - mean) / sqrt(var + eps) * weight + bias, with weight and bias
/// [channels]. Wu & He 2018.
Tensor group_norm(const Tensor& input, int64_t num_groups, OptionalTensor weight = {},
                  OptionalTensor bias = {}, double eps = 1e-5);
/// The fused kernel behind group_norm, for input of n * channels * positions elements: result, mean
/// and 1 / sqrt(var + eps), the last two [n, groups] and f32 (f64 for f64 input).
std::tuple<Tensor, Tensor, Tensor> fused_group_norm(const Tensor& input, OptionalTensor weight,
                                                    OptionalTensor bias, int64_t n,
                                                    int64_t channels, int64_t positions,
                                                    int64_t groups, double eps);
/// fused_group_norm with mean and 1 / sqrt(var + eps) in ATen's dtype: the input's, but f32 for f16
/// and bf16 with f32 parameters.
std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, OptionalTensor weight,
                                                     OptionalTensor bias, int64_t n,
                                                     int64_t channels, int64_t positions,
                                                     int64_t groups, double eps);
/// Gradients of input, weight and bias; those not selected by `output_mask` are undefined.
std::tuple<Tensor, Tensor, Tensor> native_group_norm_backward(
    const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
    OptionalTensor weight, int64_t n, int64_t channels, int64_t positions, int64_t groups,
    BoolList output_mask);

/// layer_norm and rms_norm composed of simple operators: the references the kernels are tested
/// against.
Tensor layer_norm_reference(const Tensor& input, IntList normalized_shape,
                            OptionalTensor weight = {}, OptionalTensor bias = {},
                            double eps = 1e-5);
Tensor rms_norm_reference(const Tensor& input, IntList normalized_shape, OptionalTensor weight = {},
                          std::optional<double> eps = std::nullopt);

}  // namespace lockstep
