#pragma once

#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Batch norm (Ioffe & Szegedy 2015): (input - mean) / sqrt(var + eps) * weight + bias, with one
// mean and variance for each channel of input [batch, channels, ...]. Weight, bias and the running
// statistics are [channels]; weight and bias may be missing. Statistics are summed in f64 and kept
// in f32 (f64 for f64 input). All results have the same bits for any number of threads, and on the
// cpu for row-major images and those with their channels innermost.
//
// In training the batch's own statistics are used (the biased variance), and the running ones,
// where given, move towards them in place: r = (1 - momentum) r + momentum s, with the unbiased
// variance. Otherwise the running ones are used.

/// cudnn_enabled has no effect.
Tensor batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                  OptionalTensor running_mean, OptionalTensor running_var, bool training,
                  double momentum = 0.1, double eps = 1e-5);
/// The same with what backward needs: the batch's mean and 1 / sqrt(var + eps) in training, empty
/// otherwise; in halves where all arguments are and the device is no GPU, as in ATen.
std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, OptionalTensor weight,
                                                     OptionalTensor bias,
                                                     OptionalTensor running_mean,
                                                     OptionalTensor running_var, bool training,
                                                     double momentum, double eps);
/// The kernel of training, which changes no argument: result, mean, 1 / sqrt(var + eps), and the
/// running mean and variance after this batch (undefined where not given).
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> fused_batch_norm(
    const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean,
    OptionalTensor running_var, double momentum, double eps);
/// Gradients of input, weight and bias, each computed where `output_mask` says so, else undefined.
/// Reads the saved statistics when `train`, else the running ones.
std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(
    const Tensor& grad_out, const Tensor& input, OptionalTensor weight, OptionalTensor running_mean,
    OptionalTensor running_var, OptionalTensor save_mean, OptionalTensor save_invstd, bool train,
    double eps, BoolList output_mask);

/// batch_norm in training, written with simple operators: the oracle of the kernel.
Tensor batch_norm_reference(const Tensor& input, OptionalTensor weight = {},
                            OptionalTensor bias = {}, double eps = 1e-5);

}  // namespace lockstep
