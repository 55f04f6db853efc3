#pragma once

#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep::rules {

// Checks of the rules of losses and softmax, which stand above the operators' blocks.

/// Throws DTypeError unless the input is of a floating dtype.
void check_floating(std::string_view op, const Tensor& self);
/// Throws DTypeError unless the dtype of `target` is one of class numbers.
void check_class_numbers(std::string_view op, const Tensor& target);
/// Throws DTypeError or ShapeError unless `target` is [rows] of class numbers.
void check_class_targets(std::string_view op, int64_t rows, const Tensor& target);
/// Throws ShapeError unless `reduction` is the number of a Reduction.
void check_reduction(std::string_view op, int64_t reduction);

}  // namespace lockstep::rules
