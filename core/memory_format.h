#pragma once

#include <string_view>

#include "core/options.h"
#include "core/shape.h"

namespace lockstep {

/// Strides of a fresh tensor like one of (sizes, strides) in `format`. kPreserve keeps strides
/// that leave no gaps and is row-major otherwise; kChannelsLast takes 4 dimensions (N, C, H, W),
/// kChannelsLast3d takes 5. Throws ShapeError naming `op` for other ranks.
Dims strides_in_format(std::string_view op, MemoryFormat format, IntList sizes, IntList strides);

}  // namespace lockstep
