#pragma once

#include "kernels/common/strided_plan.h"

namespace lockstep::cpu {

/// Returns the dimension along which the input is contiguous while the output is contiguous along
/// dimension 0, or 0 if the plan (of an output and one input of one dtype) is not a transposition.
int transposed_dimension(const StridedPlan& plan, int64_t element_size);

/// Copies a block of the output, whose rows are `to_stride` bytes apart: row r, column c comes from
/// `from + c * from_stride + r * (element size)`.
using TransposeBlock = void (*)(char* to, int64_t to_stride, const char* from, int64_t from_stride,
                                int64_t rows, int64_t columns);
TransposeBlock transpose_block(int64_t element_size);

/// Copies a transposing plan in blocks, so that both sides are accessed by whole cache lines.
void transpose_copy(const StridedPlan& plan, int dimension, int64_t element_size);

}  // namespace lockstep::cpu
