#pragma once

#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

/// Turns a list for 1d pooling into one for 2d pooling over a first dimension of size 1, for which
/// it holds `otherwise`.
Dims with_height(IntList list, int64_t otherwise);
/// The input [..., length] of 1d pooling as [..., 1, length]. Throws ShapeError naming `op`.
Tensor with_height(std::string_view op, const Tensor& self);

}  // namespace lockstep
