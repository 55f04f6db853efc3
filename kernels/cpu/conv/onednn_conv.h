#pragma once

#include "kernels/common/conv_problem.h"

/// Convolutions by oneDNN. Every library call runs on one thread, on a part of the batch that
/// depends only on the problem's shape, so the bits do not depend on the number of threads.
namespace lockstep::cpu::onednn {

/// Computes `result` and returns true, or does nothing and returns false if oneDNN has no fast
/// kernel for the problem on this processor. Supports f32 and bf16 (f32 sums, rounded once);
/// `tensors.bias` is added to a map. Compiled kernels are cached per thread, keyed by the problem.
bool convolve(ConvResult result, const ConvProblem& problem, const ConvTensors& tensors);

}  // namespace lockstep::cpu::onednn
