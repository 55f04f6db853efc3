#pragma once

#include <functional>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

struct GradcheckOptions {
  double step = 1e-6;      ///< step of the central difference
  double absolute = 1e-5;  ///< tolerance: absolute + relative * |numerical| + rounding
  double relative = 1e-3;
  double nondeterminism = 0;  ///< tolerated difference between two backwards of one graph
};

using TensorFunction = std::function<Tensor(TensorList inputs)>;
using TensorsFunction = std::function<std::vector<Tensor>(TensorList inputs)>;

/// Compares the gradients that backward computes for `function` at `inputs` with central
/// differences, element by element. The tolerance includes the rounding error of a difference of
/// two outputs: 2^-52 of the larger, divided by the step. Checks the inputs that require grad,
/// which must be float64 leaves on cpu without overlapping elements; the others are passed on. The
/// function must be pure; outputs that are not floating are ignored. Returns true, or throws
/// AutogradError naming input, output, their elements and both values; also throws when a second
/// backward gives different gradients than the first.
bool gradcheck(const TensorsFunction& function, TensorList inputs, GradcheckOptions options = {});
bool gradcheck(const TensorFunction& function, TensorList inputs, GradcheckOptions options = {});

/// gradcheck of second derivatives: checks the gradients of the outputs, weighted by fixed
/// pseudo-random numbers, as a function of the inputs and of these weights.
bool gradgradcheck(const TensorsFunction& function, TensorList inputs,
                   GradcheckOptions options = {});
bool gradgradcheck(const TensorFunction& function, TensorList inputs,
                   GradcheckOptions options = {});

}  // namespace lockstep
