#include "core/ops/optimizer/optimizer_rules.h"

#include "core/base/check.h"
#include "core/ops/optimizer/optimizer.h"

namespace lockstep::rules {

namespace {

/// A list argument of the call other than the parameters.
struct NamedList {
  std::string_view name;
  TensorList tensors;
};

void check_list(std::string_view op, TensorList self, const NamedList& list, bool written) {
  LS_CHECK(list.tensors.size() == self.size(), ShapeError,
           "[{}] expected one of {} per parameter: {}, got {}.", op, list.name, self.size(),
           list.tensors.size());
  for (size_t i = 0; i < self.size(); ++i) {
    const Tensor& tensor = list.tensors[i];
    LS_CHECK(tensor.defined(), ShapeError,
             "[{}] {}[{}] is undefined: expected a tensor of shape {}. A parameter without a "
             "gradient takes no part in the step.",
             op, list.name, i, self[i].shape());
    LS_CHECK(same(tensor.sizes(), self[i].sizes()), ShapeError,
             "[{}] {}[{}] has another shape than its parameter: expected {}, got {}.", op,
             list.name, i, self[i].shape(), tensor.shape());
    LS_CHECK(tensor.dtype() == self[0].dtype() &&
                 (tensor.dtype() == DType::kF32 || tensor.dtype() == DType::kF64),
             DTypeError,
             "[{}] expected all tensors to be float32, or all float64, got {} in {}[{}].", op,
             to_string(tensor.dtype()), list.name, i);
    LS_CHECK(!written || tensor.is_contiguous(), ShapeError,
             "[{}] {}[{}] is written in place and must be contiguous, got strides {}.", op,
             list.name, i, to_string(tensor.strides()));
  }
}

void check_decayed(std::string_view op, TensorList self, IntList decayed) {
  LS_CHECK(decayed.empty() || decayed.size() == self.size(), ShapeError,
           "[{}] expected one flag per parameter in decayed, or none: {}, got {}.", op, self.size(),
           decayed.size());
}

void check_number(std::string_view op, std::string_view name, OptionalTensor number, DType dtype) {
  if (!number) return;
  LS_CHECK(number->dtype() == dtype && number->numel() == 1, DTypeError,
           "[{}] {}: expected one element of {}, got {} of shape {}.", op, name, to_string(dtype),
           to_string(number->dtype()), number->shape());
}

/// Checks the tensors with values that are only on the device.
void check_control(std::string_view op, OptionalTensor grad_factor, OptionalTensor found_inf) {
  check_number(op, "grad_factor", grad_factor, DType::kF64);
  check_number(op, "found_inf", found_inf, DType::kF32);
}

void check_single_or_double(std::string_view op, const Tensor& self) {
  LS_CHECK(self.dtype() == DType::kF32 || self.dtype() == DType::kF64, DTypeError,
           "[{}] expected float32 or float64, got {}.", op, to_string(self.dtype()));
}

}  // namespace

Outputs fused_adamw(MutableTensorList self, TensorList grads, MutableTensorList exp_avgs,
                    MutableTensorList exp_avg_sqs, double, double, double, double, double,
                    const Tensor& step, double, IntList decayed, OptionalTensor grad_factor,
                    OptionalTensor found_inf) {
  constexpr std::string_view kOp = "_fused_adamw_";
  check_list(kOp, self, {"self", self}, true);
  check_list(kOp, self, {"grads", grads}, false);
  check_list(kOp, self, {"exp_avgs", exp_avgs}, true);
  check_list(kOp, self, {"exp_avg_sqs", exp_avg_sqs}, true);
  check_decayed(kOp, self, decayed);
  check_control(kOp, grad_factor, found_inf);
  check_number(kOp, "step", step, DType::kF64);
  return {};
}

Outputs fused_sgd(MutableTensorList self, TensorList grads, MutableTensorList momentum_buffers,
                  double, double momentum, bool, double, double, IntList decayed,
                  OptionalTensor grad_factor, OptionalTensor found_inf) {
  constexpr std::string_view kOp = "_fused_sgd_";
  check_list(kOp, self, {"self", self}, true);
  check_list(kOp, self, {"grads", grads}, false);
  if (momentum != 0 || !momentum_buffers.empty()) {
    check_list(kOp, self, {"momentum_buffers", momentum_buffers}, true);
  }
  check_decayed(kOp, self, decayed);
  check_control(kOp, grad_factor, found_inf);
  return {};
}

Outputs block_square_sums(TensorList self) {
  constexpr std::string_view kOp = "_block_square_sums";
  int64_t blocks = 0;
  for (const Tensor& each : self) {
    check_single_or_double(kOp, each);
    LS_CHECK(each.dtype() == self[0].dtype(), DTypeError,
             "[{}] expected all tensors to be of one dtype, got {} and {}.", kOp,
             to_string(self[0].dtype()), to_string(each.dtype()));
    blocks += (each.numel() + kNormBlock - 1) / kNormBlock;
  }
  return one({blocks}, DType::kF64);
}

Outputs ordered_sum(const Tensor& self) {
  check_single_or_double("_ordered_sum", self);
  return one({}, DType::kF64);
}

}  // namespace lockstep::rules
