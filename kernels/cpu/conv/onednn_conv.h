#pragma once

#include "kernels/common/conv_problem.h"

/// oneDNN's convolutions. Every call of the library runs on one thread, on images of the batch that
/// the problem's shape alone puts together, so the bits do not depend on the number of threads.
namespace lockstep::cpu::onednn {

/// Computes `result` and returns true, or does nothing and returns false where oneDNN has no fast
/// kernel for the problem on this processor. f32 and bf16 (f32 sums, rounded once); tensors.bias is
/// added to a map. Compiled kernels are kept per thread, keyed by the problem.
bool convolve(ConvResult result, const ConvProblem& problem, const ConvTensors& tensors);

}  // namespace lockstep::cpu::onednn
