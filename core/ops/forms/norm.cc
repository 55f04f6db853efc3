#include "core/ops/forms/norm.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                  OptionalTensor running_mean, OptionalTensor running_var, bool training,
                  double momentum, double eps, bool cudnn_enabled) {
  return form<Tensor(const Tensor&, OptionalTensor, OptionalTensor, OptionalTensor, OptionalTensor, bool, double, double, bool), "batch_norm">()(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled);
}
Tensor group_norm(const Tensor& input, int64_t num_groups, OptionalTensor weight,
                  OptionalTensor bias, double eps, bool cudnn_enabled) {
  return form<Tensor(const Tensor&, int64_t, OptionalTensor, OptionalTensor, double, bool), "group_norm">()(input, num_groups, weight, bias, eps, cudnn_enabled);
}
Tensor layer_norm(const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                  OptionalTensor bias, double eps, bool cudnn_enable) {
  return form<Tensor(const Tensor&, IntList, OptionalTensor, OptionalTensor, double, bool), "layer_norm">()(input, normalized_shape, weight, bias, eps, cudnn_enable);
}
std::tuple<Tensor, Tensor, Tensor> native_batch_norm_out(const Tensor& out, const Tensor& save_mean,
                                                         const Tensor& save_invstd,
                                                         const Tensor& input, OptionalTensor weight,
                                                         OptionalTensor bias,
                                                         OptionalTensor running_mean,
                                                         OptionalTensor running_var, bool training,
                                                         double momentum, double eps) {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, OptionalTensor, OptionalTensor, OptionalTensor, OptionalTensor, bool, double, double, const Tensor&, const Tensor&, const Tensor&), "native_batch_norm.out">()(input, weight, bias, running_mean, running_var, training, momentum, eps, out, save_mean, save_invstd);
}
std::tuple<Tensor, Tensor, Tensor> native_group_norm_out(const Tensor& out0, const Tensor& out1,
                                                         const Tensor& out2, const Tensor& input,
                                                         OptionalTensor weight, OptionalTensor bias,
                                                         int64_t N, int64_t C, int64_t HxW,
                                                         int64_t group, double eps) {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, OptionalTensor, OptionalTensor, int64_t, int64_t, int64_t, int64_t, double, const Tensor&, const Tensor&, const Tensor&), "native_group_norm.out">()(input, weight, bias, N, C, HxW, group, eps, out0, out1, out2);
}
std::tuple<Tensor, Tensor, Tensor> native_layer_norm_out(const Tensor& out0, const Tensor& out1,
                                                         const Tensor& out2, const Tensor& input,
                                                         IntList normalized_shape,
                                                         OptionalTensor weight, OptionalTensor bias,
                                                         double eps) {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, IntList, OptionalTensor, OptionalTensor, double, const Tensor&, const Tensor&, const Tensor&), "native_layer_norm.out">()(input, normalized_shape, weight, bias, eps, out0, out1, out2);
}

}  // namespace lockstep
