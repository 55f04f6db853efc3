#pragma once

#include "core/tensor/shape.h"
#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

/// Plans the walk over a box of `sizes`, with one list of strides per operand, for one or two
/// operands. Dimensions of size 1 are dropped, and neighbours that every operand walks with one
/// stride are merged. Throws ShapeError if too many dimensions remain.
template <int kOperands>
Walk<kOperands> plan_walk(IntList sizes, const IntList (&strides)[kOperands]);

}  // namespace lockstep::cuda
