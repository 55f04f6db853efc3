#include "core/ops/optimizer/optimizer.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
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
void check_control(std::string_view op, OptionalTensor grad_factor, OptionalTensor lr_factor,
                   OptionalTensor found_inf) {
  check_number(op, "grad_factor", grad_factor, DType::kF64);
  check_number(op, "lr_factor", lr_factor, DType::kF64);
  check_number(op, "found_inf", found_inf, DType::kF32);
}

/// Checks the copies that are written beside the parameters.
void check_casts(std::string_view op, TensorList self, TensorList casts) {
  LS_CHECK(casts.empty() || casts.size() == self.size(), ShapeError,
           "[{}] expected one of casts per parameter, or none: {}, got {}.", op, self.size(),
           casts.size());
  for (size_t i = 0; i < casts.size(); ++i) {
    const Tensor& cast = casts[i];
    LS_CHECK(same(cast.sizes(), self[i].sizes()) && cast.is_contiguous(), ShapeError,
             "[{}] casts[{}]: expected a contiguous tensor of shape {}, got {}.", op, i,
             self[i].shape(), to_string(cast));
    LS_CHECK((cast.dtype() == DType::kBF16 || cast.dtype() == DType::kF16) &&
                 cast.dtype() == casts[0].dtype(),
             DTypeError, "[{}] expected all casts in bfloat16, or all in float16, got {}.", op,
             to_string(cast.dtype()));
  }
}

void check_single_or_double(std::string_view op, const Tensor& self) {
  LS_CHECK(self.dtype() == DType::kF32 || self.dtype() == DType::kF64, DTypeError,
           "[{}] expected float32 or float64, got {}.", op, to_string(self.dtype()));
}

Outputs fused_adamw(MutableTensorList self, TensorList grads, MutableTensorList exp_avgs,
                    MutableTensorList exp_avg_sqs, double, double, double, double, double,
                    const Tensor& step, double, IntList decayed, OptionalTensor grad_factor,
                    OptionalTensor found_inf, MutableTensorList casts, OptionalTensor lr_factor) {
  constexpr std::string_view kOp = "_fused_adamw_";
  check_list(kOp, self, {"self", self}, true);
  check_list(kOp, self, {"grads", grads}, false);
  check_list(kOp, self, {"exp_avgs", exp_avgs}, true);
  check_list(kOp, self, {"exp_avg_sqs", exp_avg_sqs}, true);
  check_decayed(kOp, self, decayed);
  check_control(kOp, grad_factor, lr_factor, found_inf);
  check_number(kOp, "step", step, DType::kF64);
  check_casts(kOp, self, casts);
  return {};
}

Outputs fused_sgd(MutableTensorList self, TensorList grads, MutableTensorList momentum_buffers,
                  double, double momentum, bool, double, double, IntList decayed,
                  OptionalTensor grad_factor, OptionalTensor found_inf, MutableTensorList casts,
                  OptionalTensor lr_factor) {
  constexpr std::string_view kOp = "_fused_sgd_";
  check_list(kOp, self, {"self", self}, true);
  check_list(kOp, self, {"grads", grads}, false);
  if (momentum != 0 || !momentum_buffers.empty()) {
    check_list(kOp, self, {"momentum_buffers", momentum_buffers}, true);
  }
  check_decayed(kOp, self, decayed);
  check_control(kOp, grad_factor, lr_factor, found_inf);
  check_casts(kOp, self, casts);
  return {};
}

Outputs fused_lion(MutableTensorList self, TensorList grads, MutableTensorList exp_avgs, double,
                   double, double, double, double, IntList decayed, OptionalTensor grad_factor,
                   OptionalTensor found_inf, MutableTensorList casts, OptionalTensor lr_factor) {
  constexpr std::string_view kOp = "_fused_lion_";
  check_list(kOp, self, {"self", self}, true);
  check_list(kOp, self, {"grads", grads}, false);
  check_list(kOp, self, {"exp_avgs", exp_avgs}, true);
  check_decayed(kOp, self, decayed);
  check_control(kOp, grad_factor, lr_factor, found_inf);
  check_casts(kOp, self, casts);
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

}  // namespace
}  // namespace rules

// ATen's operators of these names take one weight decay for all tensors and a step count for each.
// These take a decay flag per tensor, so that one pass covers all parameters, and one step count,
// which the caller advances, so that a step may be split into several calls.
LS_OP(
    fused_adamw,
    void(MutableTensorList, TensorList, MutableTensorList, MutableTensorList, double, double,
         double, double, double, const Tensor&, double, IntList, OptionalTensor, OptionalTensor,
         MutableTensorList, OptionalTensor),
    "_fused_adamw_(Tensor(a!)[] self, Tensor[] grads, Tensor(b!)[] exp_avgs, "
    "Tensor(c!)[] exp_avg_sqs, float lr, float beta1, float beta2, float weight_decay, float eps, "
    "Tensor step, float grad_scale=1., int[] decayed=[], Tensor? grad_factor=None, "
    "Tensor? found_inf=None, Tensor(e!)[] casts=[], Tensor? lr_factor=None) -> ()")
    .doc("One step of AdamW on all parameters in one pass.")
    .structured(rules::fused_adamw)
    .not_differentiable("it is an optimizer's step");
void _fused_adamw_(MutableTensorList self, TensorList grads, MutableTensorList exp_avgs,
                   MutableTensorList exp_avg_sqs, double lr, double beta1, double beta2,
                   double weight_decay, double eps, const Tensor& step, double grad_scale,
                   IntList decayed, OptionalTensor grad_factor, OptionalTensor found_inf,
                   MutableTensorList casts, OptionalTensor lr_factor) {
  op_fused_adamw(self, grads, exp_avgs, exp_avg_sqs, lr, beta1, beta2, weight_decay, eps, step,
                 grad_scale, decayed, grad_factor, found_inf, casts, lr_factor);
}

LS_OP(fused_sgd,
      void(MutableTensorList, TensorList, MutableTensorList, double, double, bool, double, double,
           IntList, OptionalTensor, OptionalTensor, MutableTensorList, OptionalTensor),
      "_fused_sgd_(Tensor(a!)[] self, Tensor[] grads, Tensor(b!)[] momentum_buffers, "
      "float lr, float momentum, bool nesterov, float weight_decay, float grad_scale=1., "
      "int[] decayed=[], Tensor? grad_factor=None, Tensor? found_inf=None, "
      "Tensor(c!)[] casts=[], Tensor? lr_factor=None) -> ()")
    .doc("One step of SGD on all parameters in one pass.")
    .structured(rules::fused_sgd)
    .not_differentiable("it is an optimizer's step");
void _fused_sgd_(MutableTensorList self, TensorList grads, MutableTensorList momentum_buffers,
                 double lr, double momentum, bool nesterov, double weight_decay, double grad_scale,
                 IntList decayed, OptionalTensor grad_factor, OptionalTensor found_inf,
                 MutableTensorList casts, OptionalTensor lr_factor) {
  op_fused_sgd(self, grads, momentum_buffers, lr, momentum, nesterov, weight_decay, grad_scale,
               decayed, grad_factor, found_inf, casts, lr_factor);
}

LS_OP(fused_lion,
      void(MutableTensorList, TensorList, MutableTensorList, double, double, double, double, double,
           IntList, OptionalTensor, OptionalTensor, MutableTensorList, OptionalTensor),
      "_fused_lion_(Tensor(a!)[] self, Tensor[] grads, Tensor(b!)[] exp_avgs, float lr, "
      "float beta1, float beta2, float weight_decay, float grad_scale=1., int[] decayed=[], "
      "Tensor? grad_factor=None, Tensor? found_inf=None, Tensor(c!)[] casts=[], Tensor? "
      "lr_factor=None) -> ()")
    .doc("One step of Lion on all parameters in one pass.")
    .structured(rules::fused_lion)
    .not_differentiable("it is an optimizer's step");
void _fused_lion_(MutableTensorList self, TensorList grads, MutableTensorList exp_avgs, double lr,
                  double beta1, double beta2, double weight_decay, double grad_scale,
                  IntList decayed, OptionalTensor grad_factor, OptionalTensor found_inf,
                  MutableTensorList casts, OptionalTensor lr_factor) {
  op_fused_lion(self, grads, exp_avgs, lr, beta1, beta2, weight_decay, grad_scale, decayed,
                grad_factor, found_inf, casts, lr_factor);
}

LS_OP(block_square_sums, Tensor(TensorList), "_block_square_sums(Tensor[] self) -> Tensor")
    .doc("Sums of squares of blocks of 4096 elements of each tensor, f64, in a fixed order.")
    .structured(rules::block_square_sums)
    .not_differentiable("norms are taken of gradients, after backward");
Tensor _block_square_sums(TensorList self) { return op_block_square_sums(self); }

LS_OP(ordered_sum, Tensor(const Tensor&), "_ordered_sum(Tensor self) -> Tensor")
    .doc("The sum of all elements in f64: runs of 256, then runs of their sums, and so on.")
    .structured(rules::ordered_sum)
    .not_differentiable("norms are taken of gradients, after backward");
Tensor _ordered_sum(const Tensor& self) { return op_ordered_sum(self); }

}  // namespace lockstep
