#pragma once

#include "kernels/common/conv_problem.h"

namespace lockstep::cpu {

/// Computes `result` by matrix products over unfolded images (im2col; Chellapilla et al. 2006), for
/// every dtype with products except f16 and bf16. The bits do not depend on the number of threads.
/// `tensors.bias` is added to a map.
void convolve_by_loops(ConvResult result, const ConvProblem& problem, const ConvTensors& tensors);

}  // namespace lockstep::cpu
