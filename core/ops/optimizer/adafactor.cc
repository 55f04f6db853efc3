#include "core/ops/optimizer/adafactor.h"

#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

namespace {

Tensor root_mean_square(const Tensor& x) { return sqrt(mean(square(x))); }

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

void adafactor_(const Tensor& parameter, const Tensor& gradient, const AdafactorState& state,
                const Tensor& step, const AdafactorRule& rule, double grad_scale,
                OptionalTensor grad_factor, OptionalTensor found_inf) {
  LS_CHECK(same(parameter.sizes(), gradient.sizes()), ShapeError,
           "[adafactor_] the gradient has another shape than its parameter: expected {}, got {}.",
           parameter.shape(), gradient.shape());
  if (parameter.numel() == 0) return;
  const DType dtype = parameter.dtype();
  Tensor g = gradient * grad_scale;
  if (grad_factor) g = g * grad_factor->to(dtype);
  // What a skipped step computes may be NaN: it is chosen away, not multiplied by 0.
  const auto assign = [&](const Tensor& into, const Tensor& value) {
    into.copy_(found_inf ? where(eq(*found_inf, 0), value, into) : value);
  };
  const Tensor fresh = pow(step, rule.beta2_decay).to(dtype);
  const Tensor squares = square(g) + rule.epsilon1;
  const auto move = [&](const Tensor& average, const Tensor& now) {
    assign(average, average + fresh * (now - average));
  };
  Tensor v = state.row;
  if (parameter.dim() >= 2) {
    move(state.row, mean(squares, {-1}, true));
    move(state.column, mean(squares, {-2}, true));
    v = state.row / mean(state.row, {-2}, true) * state.column;
  } else {
    move(state.row, squares);
  }
  const Tensor u = g * rsqrt(v);
  const Tensor rate = clamp_min(root_mean_square(parameter), rule.epsilon2) *
                      clamp_max(rsqrt(step), rule.learning_rate).to(dtype);
  const Tensor scale = rate / clamp_min(root_mean_square(u) / rule.clip, 1);
  assign(parameter, parameter * (1 - rule.learning_rate * rule.weight_decay) - u * scale);
}

}  // namespace lockstep
