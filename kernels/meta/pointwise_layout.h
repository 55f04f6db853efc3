#pragma once

#include <initializer_list>
#include <string_view>

#include "core/outputs.h"

namespace lockstep::rules {

/// The result of a pointwise operator: the operands' common shape, and their strides where all
/// operands of that shape agree on strides that leave no gaps. Throws ShapeError naming `op`.
Outputs pointwise_result(std::string_view op, DType dtype,
                         std::initializer_list<const Tensor*> operands);

}  // namespace lockstep::rules
