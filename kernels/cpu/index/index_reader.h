#pragma once

#include <string_view>
#include <vector>

#include "core/tensor/kernel_arguments.h"

namespace lockstep::cpu {

/// Reads a contiguous int64 or int32 tensor as int64. Throws IndexError with `op`, the offending
/// number and the range if one is outside [0, size).
std::vector<int64_t> read_indices(std::string_view op, const In& indices, int64_t size);
/// Reads indices in [-size, size) of dimension `dim`; negative ones count from the end. Throws
/// IndexError if one is out of range.
std::vector<int64_t> read_wrapped_indices(std::string_view op, const In& indices, int64_t size,
                                          int64_t dim);

}  // namespace lockstep::cpu
