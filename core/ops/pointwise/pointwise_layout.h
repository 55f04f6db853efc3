#pragma once

#include <initializer_list>
#include <string_view>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

/// The result of a pointwise operator: the operands' broadcast shape, with strides that have no
/// gaps and follow the operands' order of dimensions (see dense_strides). Throws ShapeError naming
/// `op`.
Outputs pointwise_result(std::string_view op, DType dtype,
                         std::initializer_list<const Tensor*> operands);

}  // namespace lockstep::rules
