#include "core/ops/optimizer/adafactor.h"

#include <vector>

#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

namespace {

Tensor rms_of(const Tensor& x) {
  const Tensor wide = size_of(x.dtype()) < 4 ? x.to(DType::kF32) : x;
  return adafactor_rms(_block_square_sums(std::vector<Tensor>{wide.contiguous()}), x.numel());
}

/// Writes the value unless the step is skipped. What a skipped step computes may be NaN: it is
/// chosen away, not multiplied by 0.
void assign(const Tensor& into, const Tensor& value, const OptionalTensor& found_inf) {
  into.copy_(found_inf ? where(eq(*found_inf, 0), value, into) : value);
}

}  // namespace

Dims adafactor_row_sizes(IntList parameter) {
  Dims sizes = to_dims(parameter);
  if (sizes.size() >= 2) sizes.back() = 1;
  return sizes;
}

Dims adafactor_column_sizes(IntList parameter) {
  if (parameter.size() < 2) return {0};
  Dims sizes = to_dims(parameter);
  sizes[sizes.size() - 2] = 1;
  return sizes;
}

Tensor adafactor_rms(const Tensor& square_sums, int64_t elements) {
  return sqrt(_ordered_sum(square_sums) / static_cast<double>(elements));
}

Tensor adafactor_direction_(const Tensor& gradient, const AdafactorState& state, const Tensor& step,
                            const AdafactorRule& rule, double grad_scale,
                            OptionalTensor grad_factor, OptionalTensor found_inf) {
  if (gradient.numel() == 0) return gradient;
  const DType dtype = gradient.dtype();
  const Tensor g = gradient * grad_scale;
  if (grad_factor) g.mul_(grad_factor->to(dtype));
  const Tensor fresh = pow(step, rule.beta2_decay).to(dtype);
  const auto move = [&](const Tensor& average, const Tensor& now) {
    assign(average, average + fresh * (now - average), found_inf);
  };
  // A tensor may be the largest of a model: as few copies of it as can be.
  const auto squares = [&] { return square(g).add_(rule.epsilon1); };
  Tensor u;
  if (gradient.dim() >= 2) {
    {
      const Tensor now = squares();
      move(state.row, mean(now, {-1}, true));
      move(state.column, mean(now, {-2}, true));
    }
    u = (state.row / mean(state.row, {-2}, true) * state.column).rsqrt_();
  } else {
    move(state.row, squares());
    u = rsqrt(state.row);
  }
  u.mul_(g);
  return u.div_(clamp_min(rms_of(u) / rule.clip, 1).to(dtype));
}

void adafactor_move_(const Tensor& part, const Tensor& direction, const Tensor& rms,
                     const Tensor& step, const AdafactorRule& rule, OptionalTensor found_inf) {
  const Tensor rate = clamp_min(rms, rule.epsilon2) * clamp_max(rsqrt(step), rule.learning_rate);
  assign(
      part,
      (part * (1 - rule.learning_rate * rule.weight_decay)).sub_(direction * rate.to(part.dtype())),
      found_inf);
}

void adafactor_(const Tensor& parameter, const Tensor& gradient, const AdafactorState& state,
                const Tensor& step, const AdafactorRule& rule, double grad_scale,
                OptionalTensor grad_factor, OptionalTensor found_inf) {
  LS_CHECK(same(parameter.sizes(), gradient.sizes()), ShapeError,
           "[adafactor_] the gradient has another shape than its parameter: expected {}, got {}.",
           parameter.shape(), gradient.shape());
  if (parameter.numel() == 0) return;
  const Tensor direction =
      adafactor_direction_(gradient, state, step, rule, grad_scale, grad_factor, found_inf);
  adafactor_move_(parameter, direction, rms_of(parameter), step, rule, found_inf);
}

}  // namespace lockstep
