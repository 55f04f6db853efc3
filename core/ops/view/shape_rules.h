#pragma once

#include <string_view>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Parts of the shape rules and geometry functions of view operators, which stand above the
// operators' blocks.

/// Geometry of the diagonal of two dimensions, with an offset relative to the tensor's first
/// element.
ViewSpec diagonal_of(std::string_view op, IntList sizes, IntList strides, int64_t offset,
                     int64_t dim1, int64_t dim2);
/// Throws ShapeError naming `op` if a call would return more than 2^24 tensors.
void check_part_count(std::string_view op, int64_t parts);

}  // namespace lockstep::rules
