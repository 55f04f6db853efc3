#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

Tensor batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                  OptionalTensor running_mean, OptionalTensor running_var, bool training,
                  double momentum, double eps, bool cudnn_enabled);
Tensor group_norm(const Tensor& input, int64_t num_groups, OptionalTensor weight,
                  OptionalTensor bias, double eps, bool cudnn_enabled);
Tensor layer_norm(const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                  OptionalTensor bias, double eps, bool cudnn_enable);
std::tuple<Tensor, Tensor, Tensor> native_batch_norm_out(const Tensor& out, const Tensor& save_mean,
                                                         const Tensor& save_invstd,
                                                         const Tensor& input, OptionalTensor weight,
                                                         OptionalTensor bias,
                                                         OptionalTensor running_mean,
                                                         OptionalTensor running_var, bool training,
                                                         double momentum, double eps);
std::tuple<Tensor, Tensor, Tensor> native_group_norm_out(const Tensor& out0, const Tensor& out1,
                                                         const Tensor& out2, const Tensor& input,
                                                         OptionalTensor weight, OptionalTensor bias,
                                                         int64_t N, int64_t C, int64_t HxW,
                                                         int64_t group, double eps);
std::tuple<Tensor, Tensor, Tensor> native_layer_norm_out(const Tensor& out0, const Tensor& out1,
                                                         const Tensor& out2, const Tensor& input,
                                                         IntList normalized_shape,
                                                         OptionalTensor weight, OptionalTensor bias,
                                                         double eps);

}  // namespace lockstep
