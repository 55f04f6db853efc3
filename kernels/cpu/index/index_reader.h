#pragma once

#include <string_view>
#include <vector>

#include "core/tensor/kernel_arguments.h"

namespace lockstep::cpu {

/// The numbers of a contiguous int64 or int32 tensor as int64, each in [0, size). Throws IndexError
/// naming `op`, the first that is not, and the range.
std::vector<int64_t> read_indices(std::string_view op, const In& indices, int64_t size);
/// The same for indices in [-size, size) of dimension `dim`; negative ones count from the end.
std::vector<int64_t> read_wrapped_indices(std::string_view op, const In& indices, int64_t size,
                                          int64_t dim);

}  // namespace lockstep::cpu
