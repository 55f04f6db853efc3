#pragma once

#include <functional>

#include "nn/module.h"

namespace lockstep::nn {

/// Calls `forward`, which calls `module`, with `parameters` in place of the module's own: one for
/// each of `module.parameters()`, in that order. Returns the result of `forward`.
///
/// This makes a model a function of its parameters, as function transforms need it
/// (autograd/transforms.h, autograd/vmap.h). Per-sample gradients:
///
///   const auto loss = [&](TensorList given) {   // parameters, then one sample and its label
///     const size_t count = given.size() - 2;
///     return functional_call(model, given.first(count), [&] {
///       return sum_of_losses(model, given[count].unsqueeze(0), given[count + 1].unsqueeze(0));
///     });
///   };
///
/// The replacements have the parameters' shapes, also as samples of a batch. They replace the
/// parameters in every operator call; the module itself does not change, and code that reads a
/// parameter's elements directly gets the original ones. Throws ShapeError when the number or a
/// shape of the replacements differs.
Tensor functional_call(const Module& module, TensorList parameters,
                       const std::function<Tensor()>& forward);

}  // namespace lockstep::nn
