#pragma once

#include <functional>
#include <string>

#include "nn/module.h"

namespace lockstep::train {

/// Says in which layer numbers stop being finite: "parameter h.1.mlp.c_fc.weight holds 3 numbers
/// that are not finite", or, if all parameters and buffers are finite, "layer h.1.mlp.c_fc computed
/// numbers that are not finite from finite ones (operator addmm)". `forward` repeats the pass, each
/// operator of which is checked. Says so if the repeated pass stays finite.
std::string origin_of_non_finite(const nn::Module& model, const std::function<void()>& forward);

}  // namespace lockstep::train
