#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/shape.h"

namespace lockstep {

/// Number of elements from the first to the last one in memory, 0 without elements. Throws
/// ShapeError naming `op` unless there is a stride for each size, none is negative, and no product
/// of a size and its stride, nor their sum, overflows int64.
int64_t storage_extent(std::string_view op, IntList sizes, IntList strides);

}  // namespace lockstep
