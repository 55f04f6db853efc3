#pragma once

#include "kernels/common/conv_problem.h"

/// Convolutions of images with kernels of 3 x 3 at stride 1 by minimal filtering, F(2 x 2, 3 x
/// 3) (Winograd 1980; Lavin and Gray 2016, arXiv:1509.09308): 16 multiplications for 4 elements of
/// a map instead of 36. Sums have a fixed order, so the bits depend on neither the number of
/// threads nor the batch that an image is part of. The rounding error is about twice that of direct
/// sums.
namespace lockstep::cpu::winograd {

/// Whether `convolve` takes the problem, and is worth it: in f32, and for the weights of bf16,
/// whose sums over all images oneDNN's kernels without AMX compute at little more than f32's speed.
bool fits(ConvResult result, const ConvProblem& problem);

/// Computes `result`, in f32, and rounds weights of bf16 once; `tensors.bias` is added to a map.
void convolve(ConvResult result, const ConvProblem& problem, const ConvTensors& tensors);

}  // namespace lockstep::cpu::winograd
