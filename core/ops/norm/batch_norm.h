#pragma once

#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Batch norm (Ioffe & Szegedy 2015): (input - mean) / sqrt(var + eps) * weight + bias, with one
// mean and variance for each channel of input [batch, channels, ...]. Weight, bias and the running
// statistics are [channels]; weight and bias are optional. Statistics are summed in f64 and kept
// in f32 (f64 for f64 input). All results have the same bits for any number of threads and, on the
// cpu, for row-major and channels-last images.
//
// In training the statistics of the batch are used (the biased variance), and the running
// statistics, if given, are updated in place: r = (1 - momentum) r + momentum s, with the unbiased
// variance. Otherwise the running statistics are used.

/// cudnn_enabled has no effect.
Tensor batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                  OptionalTensor running_mean, OptionalTensor running_var, bool training,
                  double momentum = 0.1, double eps = 1e-5);
/// batch_norm that also returns what backward needs: the batch's mean and 1 / sqrt(var + eps) in
/// training, empty tensors otherwise. Their dtype is ATen's: f16 or bf16 if all arguments have it
/// and the device is not a GPU.
std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, OptionalTensor weight,
                                                     OptionalTensor bias,
                                                     OptionalTensor running_mean,
                                                     OptionalTensor running_var, bool training,
                                                     double momentum, double eps);
/// The training kernel, which changes no argument. Returns the result, mean, 1 / sqrt(var + eps),
/// and the running mean and variance after this batch (undefined where not given).
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> fused_batch_norm(
    const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean,
    OptionalTensor running_var, double momentum, double eps);
/// Gradients of input, weight and bias; those not selected by `output_mask` are undefined. Reads
/// the saved statistics if `train`, else the running ones.
std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(
    const Tensor& grad_out, const Tensor& input, OptionalTensor weight, OptionalTensor running_mean,
    OptionalTensor running_var, OptionalTensor save_mean, OptionalTensor save_invstd, bool train,
    double eps, BoolList output_mask);

/// batch_norm in training, composed of simple operators: the reference the kernel is tested
/// against.
Tensor batch_norm_reference(const Tensor& input, OptionalTensor weight = {},
                            OptionalTensor bias = {}, double eps = 1e-5);

}  // namespace lockstep
