#include "core/ops/loss/loss_rules.h"

#include "core/base/check.h"

namespace lockstep::rules {

namespace {

constexpr int64_t kNone = 0;  // Reduction::kNone

void check_floating(std::string_view op, const Tensor& self) {
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[{}] expected a floating input, got {}. Cast it with to(dtype).", op,
           to_string(self.dtype()));
}

/// Checks scores [classes] or [rows, classes] against targets [] or [rows].
void check_target(std::string_view op, const Tensor& self, const Tensor& target) {
  check_floating(op, self);
  LS_CHECK(self.dim() == 1 || self.dim() == 2, ShapeError,
           "[{}] expected scores [classes] or [rows, classes], got shape {}.", op, self.shape());
  const bool fits =
      self.dim() == 2 ? target.dim() == 1 && target.size(0) == self.size(0) : target.numel() == 1;
  LS_CHECK(fits, ShapeError, "[{}] expected a target for each row of {}, got targets of shape {}.",
           op, self.shape(), target.shape());
  const DType dtype = target.dtype();
  LS_CHECK(dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kU8, DTypeError,
           "[{}] targets are class numbers: expected int64, int32 or uint8, got {}.", op,
           to_string(dtype));
}

void check_reduction(std::string_view op, int64_t reduction) {
  LS_CHECK(reduction >= 0 && reduction <= 2, ShapeError,
           "[{}] expected reduction 0 (none), 1 (mean) or 2 (sum), got {}.", op, reduction);
}

void check_weight(std::string_view op, const Tensor& self, OptionalTensor weight) {
  if (!weight) return;
  const int64_t classes = self.size(-1);
  LS_CHECK(weight->dim() == 1 && weight->size(0) == classes, ShapeError,
           "[{}] expected a weight for each class, shape [{}], got {}.", op, classes,
           weight->shape());
  LS_CHECK(weight->dtype() == self.dtype(), DTypeError,
           "[{}] dtypes of scores and weight differ: expected {}, got {}.", op,
           to_string(self.dtype()), to_string(weight->dtype()));
}

/// Shape of the loss: one per row, or a 0-d tensor if it is reduced or there is one row.
Dims loss_shape(const Tensor& self, int64_t reduction) {
  return reduction == kNone && self.dim() == 2 ? Dims{self.size(0)} : Dims{};
}

}  // namespace

Outputs softmax(const Tensor& self, int64_t dim, bool half_to_float) {
  check_floating("softmax", self);
  wrap_dim("softmax", dim, self.dim());
  if (!half_to_float) return one(to_dims(self.sizes()), self.dtype());
  LS_CHECK(self.dtype() == DType::kF16 || self.dtype() == DType::kBF16, DTypeError,
           "[softmax] half_to_float expects float16 or bfloat16, got {}.", to_string(self.dtype()));
  Outputs outputs = one(to_dims(self.sizes()), DType::kF32);
  outputs.compute = DType::kF32;
  return outputs;
}

Outputs softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim,
                         DType input_dtype) {
  check_floating("softmax_backward", output);
  LS_CHECK(same(grad_output.sizes(), output.sizes()), ShapeError,
           "[softmax_backward] the gradient has the wrong shape: expected {}, got {}.",
           output.shape(), grad_output.shape());
  wrap_dim("softmax_backward", dim, output.dim());
  Outputs outputs = one(to_dims(output.sizes()), input_dtype);
  outputs.compute = output.dtype();
  return outputs;
}

Outputs nll_loss_forward(const Tensor& self, const Tensor& target, OptionalTensor weight,
                         int64_t reduction, int64_t) {
  check_target("nll_loss", self, target);
  check_weight("nll_loss", self, weight);
  check_reduction("nll_loss", reduction);
  Outputs outputs = one(loss_shape(self, reduction), self.dtype());
  outputs.specs.push_back(one({}, self.dtype()).specs[0]);
  return outputs;
}

Outputs nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                          OptionalTensor weight, int64_t reduction, int64_t,
                          const Tensor& total_weight) {
  check_target("nll_loss_backward", self, target);
  check_weight("nll_loss_backward", self, weight);
  check_reduction("nll_loss_backward", reduction);
  LS_CHECK(total_weight.numel() == 1 && total_weight.dtype() == self.dtype(), ShapeError,
           "[nll_loss_backward] total_weight must be the second result of nll_loss_forward: "
           "expected one element of {}, got {}.",
           to_string(self.dtype()), to_string(total_weight));
  const Dims wanted = loss_shape(self, reduction);
  LS_CHECK(same(grad_output.sizes(), wanted), ShapeError,
           "[nll_loss_backward] the gradient has the wrong shape: expected {}, got {}.",
           to_string(wanted), grad_output.shape());
  Outputs outputs = one(to_dims(self.sizes()), self.dtype());
  outputs.compute = self.dtype();
  outputs.cast_mask = 0b1;  // the gradient
  return outputs;
}

Outputs fused_cross_entropy(const Tensor& self, const Tensor& target, int64_t reduction, int64_t) {
  check_target("cross_entropy_loss", self, target);
  check_reduction("cross_entropy_loss", reduction);
  LS_CHECK(self.dim() == 2, ShapeError, "[_fused_cross_entropy] expected [rows, classes], got {}.",
           self.shape());
  Outputs outputs = one(loss_shape(self, reduction), self.dtype());
  const DType statistics = self.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  outputs.specs.push_back(one({self.size(0)}, statistics).specs[0]);
  return outputs;
}

Outputs fused_cross_entropy_backward(const Tensor& grad_output, const Tensor& self,
                                     const Tensor& target, const Tensor& logsumexp,
                                     int64_t reduction, int64_t) {
  check_target("_fused_cross_entropy_backward", self, target);
  check_reduction("_fused_cross_entropy_backward", reduction);
  const Dims wanted = loss_shape(self, reduction);
  LS_CHECK(same(grad_output.sizes(), wanted), ShapeError,
           "[_fused_cross_entropy_backward] the gradient has the wrong shape: expected {}, got {}.",
           to_string(wanted), grad_output.shape());
  LS_CHECK(self.dim() == 2 && same(logsumexp.sizes(), {self.size(0)}), ShapeError,
           "[_fused_cross_entropy_backward] expected a logsumexp for each row of {}, got shape {}.",
           self.shape(), logsumexp.shape());
  const DType wide = promote(self.dtype(), DType::kF32);
  LS_CHECK(logsumexp.dtype() == wide, DTypeError,
           "[_fused_cross_entropy_backward] logsumexp of {} rows must be {}, got {}.",
           to_string(self.dtype()), to_string(wide), to_string(logsumexp.dtype()));
  Outputs outputs = one(to_dims(self.sizes()), self.dtype());
  outputs.compute = self.dtype();
  outputs.cast_mask = 0b1;  // the gradient
  return outputs;
}

}  // namespace lockstep::rules
