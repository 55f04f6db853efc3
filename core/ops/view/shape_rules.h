#pragma once

#include <optional>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/view/shape.cc, defined in core/ops/view/shape_rules.cc.

Outputs cat(TensorList tensors, int64_t dim);
Outputs slice_scatter(const Tensor& self, const Tensor& source, int64_t dim,
                      std::optional<int64_t> start, std::optional<int64_t> end, int64_t step);
/// Geometry of the diagonal of two dimensions, with an offset relative to the tensor's first
/// element.
ViewSpec diagonal_of(std::string_view op, IntList sizes, IntList strides, int64_t offset,
                     int64_t dim1, int64_t dim2);
Outputs diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                         int64_t dim2);
Outputs flip(const Tensor& self, IntList dims);

/// Throws ShapeError naming `op` if a call would return more than 2^24 tensors.
void check_part_count(std::string_view op, int64_t parts);

}  // namespace lockstep::rules
