#pragma once

#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that return a view of the same memory. Dimensions may be negative (-1 is the last). The
// common ones are also methods of Tensor. Each operator's block documents it: views of whole
// tensors are in view.cc, of parts in view_part.cc, those composed of other views in
// view_composite.cc.

Tensor alias(const Tensor& self);
Tensor detach(const Tensor& self);
Tensor as_strided(const Tensor& self, IntList sizes, IntList strides,
                  std::optional<int64_t> storage_offset = std::nullopt);
Tensor expand(const Tensor& self, IntList sizes);
Tensor permute(const Tensor& self, IntList dims);
Tensor select(const Tensor& self, int64_t dim, int64_t index);
Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start = std::nullopt,
             std::optional<int64_t> end = std::nullopt, int64_t step = 1);
std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim = 0);
std::vector<Tensor> split_with_sizes(const Tensor& self, IntList split_sizes, int64_t dim = 0);
/// Windows of `size` elements, `step` apart, along a dimension: they overlap when step < size. The
/// window becomes the last dimension. A 0-d tensor counts as one element.
Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step);
/// The diagonal of dimensions dim1 and dim2 as the last dimension, without those two; `offset`
/// moves it towards higher indices of dim2 (positive) or of dim1 (negative).
Tensor diagonal(const Tensor& self, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
Tensor squeeze(const Tensor& self, int64_t dim);
/// Drops those of `dims` that have size 1; an empty list drops none.
Tensor squeeze(const Tensor& self, IntList dims);
Tensor t(const Tensor& self);
Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1);
Tensor unsqueeze(const Tensor& self, int64_t dim);
Tensor view(const Tensor& self, IntList sizes);
/// Reinterprets the bytes; the last dimension shrinks or grows with the size of an element.
Tensor view(const Tensor& self, DType dtype);
/// A view where one exists, else a copy.
Tensor reshape(const Tensor& self, IntList sizes);
Tensor flatten(const Tensor& self, int64_t start_dim = 0, int64_t end_dim = -1);
/// Splits one dimension into several of `sizes`, one of which may be -1.
Tensor unflatten(const Tensor& self, int64_t dim, IntList sizes);
Tensor broadcast_to(const Tensor& self, IntList sizes);
Tensor expand_as(const Tensor& self, const Tensor& other);
Tensor view_as(const Tensor& self, const Tensor& other);

/// Zeros of `sizes` with `grad` written into the slice: the derivative of `slice`.
Tensor slice_backward(const Tensor& grad, IntList sizes, int64_t dim, int64_t start, int64_t end,
                      int64_t step);
/// Zeros of `sizes` with `grad` written at `index`: the derivative of `select`.
Tensor select_backward(const Tensor& grad, IntList sizes, int64_t dim, int64_t index);

/// Zeros of `sizes` with `grad` on a diagonal: the derivative of `diagonal`.
Tensor diagonal_backward(const Tensor& grad, IntList sizes, int64_t offset, int64_t dim1,
                         int64_t dim2);
/// Zeros of `sizes` to which the windows of `grad` are added: the derivative of `unfold`.
Tensor unfold_backward(const Tensor& grad, IntList sizes, int64_t dim, int64_t size, int64_t step);

}  // namespace lockstep
