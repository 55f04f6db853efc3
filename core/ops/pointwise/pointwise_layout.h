#pragma once

#include <initializer_list>
#include <string_view>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

/// The result of a pointwise operator: the operands' common shape, without gaps, in the order of
/// dimensions that their strides ask for (see dense_strides). Throws ShapeError naming `op`.
Outputs pointwise_result(std::string_view op, DType dtype,
                         std::initializer_list<const Tensor*> operands);

}  // namespace lockstep::rules
