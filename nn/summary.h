#pragma once

#include <functional>
#include <string>

#include "nn/module.h"

namespace lockstep::nn {

/// A table of a module and all below: path, class, number of parameters (its own and those below),
/// and how many of all are trained and their bytes. With `forward`, which is called once with
/// gradients recorded, also what each module did in it, those below included:
///   output  shape of the result, of the last call
///   FLOP    additions and multiplications of products, convolutions and attention
///   kept    bytes that are kept for backward, parameters apart; what two modules keep counts for
///           the first
/// A module that was not called, or that does not call hooks (Module::run_forward), has "-".
///
///   summary(net, [&] { net.forward(zeros({1, 3})); })
std::string summary(Module& model, const std::function<void()>& forward = {});

}  // namespace lockstep::nn
