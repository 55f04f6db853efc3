#pragma once

#include "optim/ignorable_tensor.h"
#include "optim/parameter_list.h"

namespace lockstep::optim {

// Both read and change the `grad` of the parameters; parameters without one are left out. Call them
// between backward and the optimizer's step.

/// Multiplies all gradients by max_norm / (norm + 1e-6) if that is below 1, where `norm` is the
/// `norm_type`-norm of all their elements taken together. Returns that norm as it was before: f64,
/// 0-d, on the device of the first gradient; 0 without gradients. The norm of an infinite type is
/// the largest element.
///
/// The 2-norm adds f64 sums of squares of 4096-element blocks in the order of the list (f16 and
/// bf16 are widened first), so its bits depend neither on threads nor on how parameters are
/// sharded. Waits for no device, unless `error_if_nonfinite` is set: then it throws NonFiniteError,
/// which names the first parameter whose gradient is not finite, and changes nothing.
///
/// Throws ConfigError unless max_norm and norm_type are at least 0.
IgnorableTensor clip_grad_norm_(const ParameterList& parameters, double max_norm,
                                double norm_type = 2, bool error_if_nonfinite = false);

/// Puts each element of the gradients between -clip_value and clip_value. Throws ConfigError unless
/// clip_value is at least 0.
void clip_grad_value_(const ParameterList& parameters, double clip_value);

}  // namespace lockstep::optim
