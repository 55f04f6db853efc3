#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// Numbers of Adafactor's formula, the same for all elements.
struct AdafactorRule {
  double learning_rate = 1e-2;
  double beta2_decay = -0.8;
  double epsilon1 = 1e-30;  ///< added to squares of gradients
  double epsilon2 = 1e-3;   ///< least root mean square of a parameter
  double clip = 1;          ///< largest root mean square of an update
  double weight_decay = 0;
};

/// What is kept for a parameter: for one of two or more dimensions the averages of squares over its
/// last dimension, [..., n, 1], and over the one before, [..., 1, m]; for others the averages of
/// squares themselves, in `row`.
struct AdafactorState {
  Tensor row;
  Tensor column;  ///< undefined for a parameter of less than two dimensions
};

/// Sizes of AdafactorState::row and column for a parameter; of the second, none for a vector.
Dims adafactor_row_sizes(IntList parameter);
Dims adafactor_column_sizes(IntList parameter);

/// One step of Adafactor (Shazeer & Stern 2018, algorithms 4 and 5 without momentum) in place. In
/// step t, with g = grad_scale * gradient and s = t^beta2_decay:
///   row += s (mean of (g^2 + epsilon1) over the last dimension - row), and column alike
///   v = row column / mean of row;  u = g / sqrt(v)
///   rate = max(epsilon2, rms(p)) * min(learning_rate, 1 / sqrt(t))
///   p = (1 - learning_rate * weight_decay) p - rate * u / max(1, rms(u) / clip)
/// For a parameter p of less than two dimensions v is the average of g^2 + epsilon1. rms(x) is
/// adafactor_rms of x's sums. `step`, f64 and 0-d, is t on the parameter's device. `grad_factor`
/// and `found_inf` as for _fused_adamw_ (core/ops/optimizer/optimizer.h). f32 or f64. Bits do not
/// depend on the number of threads.
void adafactor_(const Tensor& parameter, const Tensor& gradient, const AdafactorState& state,
                const Tensor& step, const AdafactorRule& rule, double grad_scale = 1,
                OptionalTensor grad_factor = {}, OptionalTensor found_inf = {});

// adafactor_ in pieces, for parameters that are kept in parts of whole blocks of kNormBlock
// elements (core/ops/optimizer/optimizer.h); the bits are those of adafactor_. Arguments are its.

/// Moves the state by a whole gradient. Returns u / max(1, rms(u) / clip), of the gradient's shape.
Tensor adafactor_direction_(const Tensor& gradient, const AdafactorState& state, const Tensor& step,
                            const AdafactorRule& rule, double grad_scale = 1,
                            OptionalTensor grad_factor = {}, OptionalTensor found_inf = {});
/// Moves any elements of a parameter by those of its direction. `rms`: of the whole parameter
/// before the step.
void adafactor_move_(const Tensor& part, const Tensor& direction, const Tensor& rms,
                     const Tensor& step, const AdafactorRule& rule, OptionalTensor found_inf = {});
/// The root mean square, f64 and 0-d, of a tensor of so many elements with these sums of
/// _block_square_sums.
Tensor adafactor_rms(const Tensor& square_sums, int64_t elements);

}  // namespace lockstep
