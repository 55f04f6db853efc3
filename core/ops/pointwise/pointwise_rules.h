#pragma once

#include <initializer_list>
#include <string_view>

#include "core/ops/pointwise/pointwise_checks.h"
#include "core/ops/pointwise/pointwise_layout.h"
#include "core/ops/pointwise/promotion.h"
#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Parts of the shape rules of pointwise operators, which stand above the operators' blocks. Kernels
// take arguments of mixed dtypes and compute in the result's, except where a rule says otherwise.

/// A result like self, of the given dtype.
Outputs unary(DType dtype, const Tensor& self);
/// A result of self's dtype, which is not bool.
Outputs numeric(std::string_view op, const Tensor& self);
/// Rule of exp, log, sqrt, tanh, ...: integers become float32.
Outputs floating_unary(const Tensor& self);
/// Rule of logical_not, isnan and isfinite.
Outputs predicate(const Tensor& self);

/// A result of the operands' common dtype.
Outputs binary(std::string_view op, const Tensor& self, const Tensor& other);
/// A bool result; the kernel gets both operands in their common dtype.
Outputs comparison(std::string_view op, const Tensor& self, const Tensor& other);
/// A result of the operands' common dtype, which is not bool, `narrowed`.
Outputs numbers(std::string_view op, const Tensor& self, const Tensor& other);

/// `outputs` with 0-d integer operands cast to the result's dtype first, if that differs: with
/// ATen's promotion a 0-d operand does not widen the result.
Outputs narrowed(Outputs outputs, std::initializer_list<const Tensor*> operands);
Outputs narrowed(std::string_view op, DType dtype, const Tensor& self, const Tensor& other);

/// Returns `dtype`. Throws DTypeError for bool: `dtype` is that of all operands together.
DType not_bool(std::string_view op, DType dtype);
/// The common dtype of three operands.
DType common_dtype(const Tensor& a, const Tensor& b, const Tensor& c);

}  // namespace lockstep::rules
