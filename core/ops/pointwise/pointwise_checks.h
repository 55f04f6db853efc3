#pragma once

#include <string_view>

#include "core/tensor/outputs.h"
#include "core/tensor/tensor.h"

namespace lockstep::rules {

// Argument checks shared by the rules of pointwise operators. Messages name the operator.

/// Throws DTypeError for a bool tensor; `instead` ends the message with advice.
void refuse_bool(std::string_view op, const Tensor& tensor, std::string_view instead);
/// Throws DTypeError unless the tensor is of a floating dtype.
void require_floating(std::string_view op, const Tensor& tensor);
/// Throws DTypeError for a fractional factor of integers.
void check_alpha(std::string_view op, DType dtype, const Scalar& alpha);

}  // namespace lockstep::rules
