#include "core/ops/loss/loss_likelihood.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/loss/loss_rules.h"
#include "core/ops/loss/reduced_losses.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_layout.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/pointwise/pointwise_special.h"
#include "core/ops/pointwise/promotion.h"

namespace lockstep {

namespace rules {
namespace {

Outputs binary_cross_entropy(const Tensor& self, const Tensor& target) {
  const DType dtype = result_type(self, target);
  LS_CHECK(is_floating(dtype), DTypeError,
           "[binary_cross_entropy] expected floating tensors, got {} and {}. Cast with to(dtype).",
           to_string(self), to_string(target));
  return pointwise_result("binary_cross_entropy", dtype, {&self, &target});
}

}  // namespace
}  // namespace rules

LS_OP(binary_cross_entropy_of_each, Tensor(const Tensor&, const Tensor&),
      "_binary_cross_entropy(Tensor self, Tensor target) -> Tensor")
    .doc("binary_cross_entropy of each element, without weight.")
    .structured(rules::binary_cross_entropy)
    .batching(batching::elementwise)
    .saves({"self", "target for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(0);
      return ctx.gradients(
          [&] {
            constexpr double kLeast = 1e-12;  // as in ATen: the slope stays finite at 0 and 1
            const Tensor slope = (self - ctx.saved(1)) / clamp_min((1 - self) * self, kLeast);
            return ctx.unbroadcast(grad * slope, 0);
          },
          [&] { return ctx.unbroadcast(grad * (log1p(neg(self)) - log(self)), 1); });
    });

LS_OP(binary_cross_entropy, Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t),
      "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> "
      "Tensor")
    .doc("-target log(self) - (1 - target) log(1 - self) for probabilities self.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& target, OptionalTensor weight,
                  int64_t reduction) {
      rules::check_reduction("binary_cross_entropy", reduction);
      rules::check_floating("binary_cross_entropy", self);
      Tensor losses = op_binary_cross_entropy_of_each(self, target);
      if (weight) losses = losses * *weight;
      return reduced(losses.to(self.dtype()), reduction);
    });
Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, OptionalTensor weight,
                            Reduction reduction) {
  return op_binary_cross_entropy(self, target, weight, static_cast<int64_t>(reduction));
}
LS_OP(binary_cross_entropy_out,
      const Tensor&(const Tensor&, const Tensor&, OptionalTensor, int64_t, const Tensor&),
      "binary_cross_entropy.out(Tensor self, Tensor target, Tensor? weight=None, int "
      "reduction=1, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("binary_cross_entropy, written into out.")
    .composite([](const Tensor& self, const Tensor& target, OptionalTensor weight,
                  int64_t reduction, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_binary_cross_entropy(self, target, weight, reduction));
    });

LS_OP(poisson_nll_loss, Tensor(const Tensor&, const Tensor&, bool, bool, double, int64_t),
      "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int "
      "reduction) -> Tensor")
    .doc("The negative logarithm of the Poisson distribution of counts target with mean input.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                  int64_t reduction) {
      rules::check_reduction("poisson_nll_loss", reduction);
      Tensor losses = log_input ? exp(input) - target * input : input - target * log(input + eps);
      if (full) {
        // Stirling's formula for log(target!).
        constexpr double kTwoPi = 6.28318530717958647692;
        const Tensor factorial = target * log(target) - target + log(target * kTwoPi) * 0.5;
        losses = losses + masked_fill(factorial, le(target, 1), 0);
      }
      return reduced(losses, reduction);
    });
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, Reduction reduction) {
  return op_poisson_nll_loss(input, target, log_input, full, eps, static_cast<int64_t>(reduction));
}

}  // namespace lockstep
