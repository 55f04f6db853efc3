#pragma once

#include <optional>
#include <vector>

#include "core/tensor.h"

namespace lockstep {

// Operators that return another look at the same memory. Dimensions may be negative (-1 is the
// last). Each has a method of Tensor by the same name; its block in view.cc says what it does.

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
Tensor squeeze(const Tensor& self, int64_t dim);
Tensor t(const Tensor& self);
Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1);
Tensor unsqueeze(const Tensor& self, int64_t dim);
Tensor view(const Tensor& self, IntList sizes);
/// Reinterprets the bytes; the last dimension shrinks or grows with the size of an element.
Tensor view(const Tensor& self, DType dtype);
/// A view where one exists, else a copy.
Tensor reshape(const Tensor& self, IntList sizes);
Tensor flatten(const Tensor& self, int64_t start_dim = 0, int64_t end_dim = -1);

/// Zeros of `sizes` with `grad` written into the slice: the derivative of `slice`.
Tensor slice_backward(const Tensor& grad, IntList sizes, int64_t dim, int64_t start, int64_t end,
                      int64_t step);
/// Zeros of `sizes` with `grad` written at `index`: the derivative of `select`.
Tensor select_backward(const Tensor& grad, IntList sizes, int64_t dim, int64_t index);

}  // namespace lockstep
