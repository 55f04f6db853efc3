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
/// Throws DTypeError for a factor that the arithmetic of `dtype` cannot hold: f32 for the floating
/// dtypes of 16 bits, else the dtype itself. `what` names the factor.
void check_factor(std::string_view op, std::string_view what, DType dtype, const Scalar& number);
/// Throws DTypeError for a fractional factor of integers, a bool factor of numbers, and a factor
/// that `dtype` cannot hold. `what` names the factor.
void check_alpha(std::string_view op, DType dtype, const Scalar& alpha,
                 std::string_view what = "alpha");

}  // namespace lockstep::rules
