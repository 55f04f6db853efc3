#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace lockstep {

/// Number of elements from the first to the last one in memory, 0 without elements. Throws
/// ShapeError naming `op` unless there is a stride for each size, none is negative, and no product
/// of a size and its stride, nor their sum, overflows int64.
int64_t storage_extent(std::string_view op, IntList sizes, IntList strides);

/// Bytes of `elements` elements. Throws OutOfMemoryError naming `op` if an int64 cannot hold them.
size_t storage_bytes(std::string_view op, int64_t elements, DType dtype);

}  // namespace lockstep
