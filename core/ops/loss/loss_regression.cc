// Losses between tensors of one shape; declared in loss.h.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/loss/loss.h"
#include "core/ops/loss/loss_rules.h"
#include "core/ops/loss/reduced_losses.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_formula.h"
#include "core/ops/pointwise/pointwise_piecewise.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

namespace {

void check_arguments(std::string_view op, const Tensor& self, const Tensor& target,
                     int64_t reduction) {
  LS_CHECK(is_floating(result_type(self, target)), DTypeError,
           "[{}] expected floating tensors, got {} and {}. Cast with to(dtype).", op,
           to_string(self), to_string(target));
  rules::check_reduction(op, reduction);
}

/// The gradient of each element's loss, given the gradient `grad` of the reduced loss.
Tensor each_gradient(const Tensor& grad, const Tensor& losses, int64_t reduction) {
  if (reduction != static_cast<int64_t>(Reduction::kMean)) return grad;
  return grad / static_cast<double>(losses.numel());
}

/// -1 and 1 outside [-width, width], x / width inside.
Tensor soft_sign(const Tensor& x, double width) {
  return where(ge(abs(x), width), sign(x), x / width);
}

/// size^2 where not `far`, else 0: the square of an infinity would make the gradient NaN.
Tensor near_square(const Tensor& size, const Tensor& far) {
  return square(masked_fill(size, far, 0));
}

}  // namespace

LS_OP(l1_loss, Tensor(const Tensor&, const Tensor&, int64_t),
      "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
    .doc("|self - target|.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction) {
      rules::check_reduction("l1_loss", reduction);  // accepts integers, too, for which mean throws
      return reduced(abs(self - target), reduction);
    });
Tensor l1_loss(const Tensor& self, const Tensor& target, Reduction reduction) {
  return op_l1_loss(self, target, static_cast<int64_t>(reduction));
}

LS_OP(mse_loss, Tensor(const Tensor&, const Tensor&, int64_t),
      "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
    .doc("(self - target)^2.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction) {
      check_arguments("mse_loss", self, target, reduction);
      return reduced(square(self - target), reduction);
    });
Tensor mse_loss(const Tensor& self, const Tensor& target, Reduction reduction) {
  return op_mse_loss(self, target, static_cast<int64_t>(reduction));
}

LS_OP(mse_loss_out, const Tensor&(const Tensor&, const Tensor&, int64_t, const Tensor&),
      "mse_loss.out(Tensor self, Tensor target, int reduction=1, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("mse_loss, written into out.")
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_mse_loss(self, target, reduction));
    });

LS_OP(mse_loss_backward, Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t),
      "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor")
    .doc("Gradient of mse_loss's first argument.")
    .composite([](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
      const Tensor distance = self - target;
      return each_gradient(grad, distance, reduction) * (distance * 2);
    });

LS_OP(mse_loss_backward_out,
      const Tensor&(const Tensor&, const Tensor&, const Tensor&, int64_t, const Tensor&),
      "mse_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, int reduction, "
      "*, Tensor(a!) grad_input) -> Tensor(a!)")
    .doc("mse_loss_backward, written into grad_input.")
    .composite([](const Tensor& grad_output, const Tensor& self, const Tensor& target,
                  int64_t reduction, const Tensor& grad_input) -> const Tensor& {
      return clone_out(grad_input, op_mse_loss_backward(grad_output, self, target, reduction));
    });

LS_OP(huber_loss, Tensor(const Tensor&, const Tensor&, int64_t, double),
      "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor")
    .doc("d^2 / 2 for d = |self - target| <= delta, else delta (d - delta / 2).")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
      check_arguments("huber_loss", self, target, reduction);
      LS_CHECK(delta > 0, ShapeError, "[huber_loss] delta must be positive, got {}.", delta);
      const Tensor size = abs(self - target);
      const Tensor far = gt(size, delta);
      const Tensor losses = where(far, (size - 0.5 * delta) * delta, near_square(size, far) * 0.5);
      return reduced(losses.to(self.dtype()), reduction);
    });
Tensor huber_loss(const Tensor& self, const Tensor& target, Reduction reduction, double delta) {
  return op_huber_loss(self, target, static_cast<int64_t>(reduction), delta);
}

LS_OP(huber_loss_out, const Tensor&(const Tensor&, const Tensor&, int64_t, double, const Tensor&),
      "huber_loss.out(Tensor self, Tensor target, int reduction=1, float delta=1., *, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("huber_loss, written into out.")
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction, double delta,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_huber_loss(self, target, reduction, delta));
    });

LS_OP(huber_loss_backward, Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t, double),
      "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float "
      "delta) -> Tensor")
    .doc("Gradient of huber_loss's first argument.")
    .composite([](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction,
                  double delta) {
      const Tensor distance = self - target;
      return each_gradient(grad, distance, reduction) * (soft_sign(distance, delta) * delta);
    });

LS_OP(huber_loss_backward_out,
      const Tensor&(const Tensor&, const Tensor&, const Tensor&, int64_t, double, const Tensor&),
      "huber_loss_backward.out(Tensor grad_output, Tensor self, Tensor target, int reduction, "
      "float delta, *, Tensor(a!) grad_input) -> Tensor(a!)")
    .doc("huber_loss_backward, written into grad_input.")
    .composite([](const Tensor& grad_output, const Tensor& self, const Tensor& target,
                  int64_t reduction, double delta, const Tensor& grad_input) -> const Tensor& {
      return clone_out(grad_input,
                       op_huber_loss_backward(grad_output, self, target, reduction, delta));
    });

LS_OP(smooth_l1_loss, Tensor(const Tensor&, const Tensor&, int64_t, double),
      "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor")
    .doc("d^2 / (2 beta) for d = |self - target| < beta, else d - beta / 2.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
      check_arguments("smooth_l1_loss", self, target, reduction);
      LS_CHECK(beta >= 0, ShapeError, "[smooth_l1_loss] beta must not be negative, got {}.", beta);
      const Tensor size = abs(self - target);
      if (beta == 0) return reduced(size, reduction);
      const Tensor far = ge(size, beta);
      const Tensor losses = where(far, size - 0.5 * beta, near_square(size, far) * (0.5 / beta));
      return reduced(losses, reduction);
    });
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, Reduction reduction, double beta) {
  return op_smooth_l1_loss(self, target, static_cast<int64_t>(reduction), beta);
}

LS_OP(smooth_l1_loss_out,
      const Tensor&(const Tensor&, const Tensor&, int64_t, double, const Tensor&),
      "smooth_l1_loss.out(Tensor self, Tensor target, int reduction=1, float beta=1., *, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("smooth_l1_loss, written into out.")
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction, double beta,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_smooth_l1_loss(self, target, reduction, beta));
    });

LS_OP(smooth_l1_loss_backward, Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t, double),
      "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, "
      "float beta) -> Tensor")
    .doc("Gradient of smooth_l1_loss's first argument.")
    .composite([](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction,
                  double beta) {
      const Tensor distance = self - target;
      const Tensor slope = beta == 0 ? sign(distance) : soft_sign(distance, beta);
      return each_gradient(grad, distance, reduction) * slope;
    });

LS_OP(smooth_l1_loss_backward_out,
      const Tensor&(const Tensor&, const Tensor&, const Tensor&, int64_t, double, const Tensor&),
      "smooth_l1_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, int "
      "reduction, float beta, *, Tensor(a!) grad_input) -> Tensor(a!)")
    .doc("smooth_l1_loss_backward, written into grad_input.")
    .composite([](const Tensor& grad_output, const Tensor& self, const Tensor& target,
                  int64_t reduction, double beta, const Tensor& grad_input) -> const Tensor& {
      return clone_out(grad_input,
                       op_smooth_l1_loss_backward(grad_output, self, target, reduction, beta));
    });

LS_OP(kl_div, Tensor(const Tensor&, const Tensor&, int64_t, bool),
      "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor")
    .doc("target (log(target) - self) for log-probabilities self.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
      LS_CHECK(is_floating(self.dtype()) && is_floating(target.dtype()), DTypeError,
               "[kl_div] expected floating tensors, got {} and {}. Cast with to(dtype).",
               to_string(self), to_string(target));
      rules::check_reduction("kl_div", reduction);
      const Tensor losses =
          log_target ? exp(target) * (target - self) : xlogy(target, target) - target * self;
      return reduced(losses, reduction);
    });
Tensor kl_div(const Tensor& self, const Tensor& target, Reduction reduction, bool log_target) {
  return op_kl_div(self, target, static_cast<int64_t>(reduction), log_target);
}

LS_OP(binary_cross_entropy_with_logits,
      Tensor(const Tensor&, const Tensor&, OptionalTensor, OptionalTensor, int64_t),
      "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
      "pos_weight=None, int reduction=1) -> Tensor")
    .doc("-pos_weight target log(sigmoid(self)) - (1 - target) log(1 - sigmoid(self)).")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, OptionalTensor weight,
                  OptionalTensor pos_weight, int64_t reduction) {
      check_arguments("binary_cross_entropy_with_logits", self, target, reduction);
      // log(1 - sigmoid(x)) = log(sigmoid(x)) - x
      Tensor gain = log_sigmoid(self);
      if (pos_weight) gain = gain * ((*pos_weight - 1) * target + 1);
      Tensor losses = (1 - target) * self - gain;
      if (weight) losses = losses * *weight;
      const bool keeps = is_floating(target.dtype());
      return reduced(keeps ? losses.to(target.dtype()) : losses, reduction);
    });
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        OptionalTensor weight, OptionalTensor pos_weight,
                                        Reduction reduction) {
  return op_binary_cross_entropy_with_logits(self, target, weight, pos_weight,
                                             static_cast<int64_t>(reduction));
}

LS_OP(binary_cross_entropy_with_logits_out,
      const Tensor&(const Tensor&, const Tensor&, OptionalTensor, OptionalTensor, int64_t,
                    const Tensor&),
      "binary_cross_entropy_with_logits.out(Tensor self, Tensor target, Tensor? weight=None, "
      "Tensor? pos_weight=None, int reduction=1, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("binary_cross_entropy_with_logits, written into out.")
    .composite([](const Tensor& self, const Tensor& target, OptionalTensor weight,
                  OptionalTensor pos_weight, int64_t reduction,
                  const Tensor& out) -> const Tensor& {
      return clone_out(
          out, op_binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction));
    });

}  // namespace lockstep
