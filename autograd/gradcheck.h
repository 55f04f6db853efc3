#pragma once

#include <functional>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

struct GradcheckOptions {
  double step = 1e-6;      ///< of the central difference
  double absolute = 1e-5;  ///< tolerated: absolute + relative * |numerical| + rounding
  double relative = 1e-3;
  double nondeterminism = 0;  ///< tolerated between two backwards of one graph
};

using TensorFunction = std::function<Tensor(TensorList inputs)>;
using TensorsFunction = std::function<std::vector<Tensor>(TensorList inputs)>;

/// Compares the gradients that backward gives for `function` at `inputs` with central differences,
/// element by element. What the difference of two rounded outputs cannot tell is tolerated: 2^-52
/// of the larger, over the step. Checked are the inputs that require grad, which must be float64
/// leaves on cpu, each element with its own memory; the others are passed on. The function must be
/// pure; outputs that are not floating are left out. Returns true, or throws AutogradError naming
/// input, output, their elements and both values; also when a second backward gives other gradients
/// than the first.
bool gradcheck(const TensorsFunction& function, TensorList inputs, GradcheckOptions options = {});
bool gradcheck(const TensorFunction& function, TensorList inputs, GradcheckOptions options = {});

/// The same for second derivatives: checks the gradients, weighted by fixed arbitrary numbers, as a
/// function of the inputs and of those weights.
bool gradgradcheck(const TensorsFunction& function, TensorList inputs,
                   GradcheckOptions options = {});
bool gradgradcheck(const TensorFunction& function, TensorList inputs,
                   GradcheckOptions options = {});

}  // namespace lockstep
