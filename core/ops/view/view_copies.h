#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace lockstep {

// Copies of views, and of tensors with a view written over; ravel is a view where there is one.

/// All elements in row-major order: a view where one exists, else a copy.
Tensor ravel(const Tensor& self);
/// A row-major copy of self[start : start + length] along `dim`. Throws IndexError when that leaves
/// the dimension.
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length);
/// A row-major copy of the windows that unfold returns.
Tensor unfold_copy(const Tensor& self, int64_t dimension, int64_t size, int64_t step);
/// A copy of self, of self's strides, with `src` written where as_strided(self, size, stride,
/// storage_offset) reads. Throws ShapeError when that is past the last element of self. Of several
/// values for one element the last stays. The gradient of self is PyTorch's, which is that of the
/// elements that src replaces.
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntList size, IntList stride,
                          std::optional<int64_t> storage_offset = std::nullopt);

}  // namespace lockstep
