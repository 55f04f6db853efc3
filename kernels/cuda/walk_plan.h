#pragma once

#include "core/tensor/shape.h"
#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

/// Plans the walk over a box of `sizes`; one list of strides for each operand. Dimensions of size 1
/// go, and neighbours that every operand walks in one stride are joined. Throws ShapeError where
/// too many are left. For one or two operands.
template <int kOperands>
Walk<kOperands> plan_walk(IntList sizes, const IntList (&strides)[kOperands]);

}  // namespace lockstep::cuda
