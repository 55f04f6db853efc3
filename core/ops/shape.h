#pragma once
#include "core/tensor.h"
namespace lockstep {
/// Joins tensors along an existing dimension; the other sizes must agree.
Tensor cat(TensorList tensors, int64_t dim = 0);
/// A copy of self with `source` written into the slice.
Tensor slice_scatter(const Tensor& self, const Tensor& source, int64_t dim = 0,
                     std::optional<int64_t> start = std::nullopt,
                     std::optional<int64_t> end = std::nullopt, int64_t step = 1);
/// The derivative of as_strided: `grad` added back at the places of the view, read with the input's geometry.
Tensor as_strided_backward(const Tensor& grad, IntList input_sizes, IntList input_strides,
                           int64_t input_offset, IntList sizes, IntList strides,
                           std::optional<int64_t> storage_offset);
}  // namespace lockstep
