#pragma once

#include <functional>
#include <string>

#include "nn/module.h"

namespace lockstep::nn {

/// A table of a module and all below: path, class, shape of the result, number of parameters (its
/// own and those below), and how many of all are trained and their bytes. Shapes are those of the
/// last call in `forward`, "-" without one:
///
///   summary(net, [&] { net.forward(zeros({1, 3})); })
std::string summary(Module& model, const std::function<void()>& forward = {});

}  // namespace lockstep::nn
