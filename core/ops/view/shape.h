#pragma once

#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that join, repeat or split tensors. Dimensions may be negative (-1 is the last).

/// Joins tensors along an existing dimension; the other sizes must agree.
Tensor cat(TensorList tensors, int64_t dim = 0);
/// Joins tensors of one shape along a new dimension.
Tensor stack(TensorList tensors, int64_t dim = 0);
/// A copy of self with `source` written into the slice.
Tensor slice_scatter(const Tensor& self, const Tensor& source, int64_t dim = 0,
                     std::optional<int64_t> start = std::nullopt,
                     std::optional<int64_t> end = std::nullopt, int64_t step = 1);
/// A copy of self with `src` written at `index` of dimension `dim`, which src lacks.
Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index);
/// A copy of self with `src` written on a diagonal, as `diagonal` would read it.
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset = 0, int64_t dim1 = 0,
                        int64_t dim2 = 1);
/// The derivative of as_strided: adds `grad` at the storage positions of the view and returns the
/// result with the input's geometry.
Tensor as_strided_backward(const Tensor& grad, IntList input_sizes, IntList input_strides,
                           int64_t input_offset, IntList sizes, IntList strides,
                           std::optional<int64_t> storage_offset);
/// Each slice along `dim` repeated `repeats` times in a row; without `dim` the tensor is flattened
/// first.
Tensor repeat_interleave(const Tensor& self, int64_t repeats,
                         std::optional<int64_t> dim = std::nullopt);
/// The elements in the opposite order along each of `dims`.
Tensor flip(const Tensor& self, IntList dims);

// Views composed of those in view.h.

/// self[start : start + length] along `dim`. Throws IndexError when it leaves the dimension.
Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length);
/// The slices of self along `dim`, without that dimension.
std::vector<Tensor> unbind(const Tensor& self, int64_t dim = 0);
/// At most `chunks` parts of equal size along `dim`; the last may be smaller.
std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim = 0);

}  // namespace lockstep
