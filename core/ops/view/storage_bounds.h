#pragma once

#include <cstddef>
#include <string_view>

#include "core/tensor/shape.h"

namespace lockstep {

/// Throws ShapeError naming `op` unless `sizes` and `strides` have one length, no stride is
/// negative, and all elements from `offset` on lie in a storage of `held` elements.
void check_in_storage(std::string_view op, IntList sizes, IntList strides, int64_t offset,
                      int64_t held);

}  // namespace lockstep
