#pragma once

#include <span>
#include <type_traits>

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that make tensors. Options left out mean float32 on default_device(), or, in the
// `*_like` family, the example's. `options.requires_grad` marks the result as a leaf.

/// Uninitialised elements.
Tensor empty(IntList sizes, TensorOptions options = {});
Tensor zeros(IntList sizes, TensorOptions options = {});
Tensor ones(IntList sizes, TensorOptions options = {});
/// Every element `value`; without a dtype: bool, int64 or float32 by the value's kind.
Tensor full(IntList sizes, const Scalar& value, TensorOptions options = {});
/// A 0-d tensor. The dtype defaults to float32.
Tensor scalar_tensor(const Scalar& value, TensorOptions options = {});

/// start, start + step, ... below (for negative steps: above) end. Without a dtype: int64 when all
/// three numbers are integers, else float32.
Tensor arange(const Scalar& end, TensorOptions options = {});
Tensor arange(const Scalar& start, const Scalar& end, TensorOptions options = {});
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
              TensorOptions options = {});

/// Uninitialised elements with the given strides, which may leave gaps or overlap.
Tensor empty_strided(IntList sizes, IntList strides, TensorOptions options = {});

/// The same shape, and the same strides when they leave no gaps.
Tensor empty_like(const Tensor& self, TensorOptions options = {});
Tensor zeros_like(const Tensor& self, TensorOptions options = {});
Tensor ones_like(const Tensor& self, TensorOptions options = {});
Tensor full_like(const Tensor& self, const Scalar& value, TensorOptions options = {});

namespace detail {
/// A new tensor of `sizes` with `count` elements copied from `values`.
Tensor tensor_from_bytes(const void* values, size_t count, DType dtype, IntList sizes);
}  // namespace detail

/// A new tensor on default_device() with these elements, row by row. Throws ShapeError when their
/// number is not that of `sizes`.
template <class T>
Tensor tensor_from(std::span<const T> values, IntList sizes) {
  return detail::tensor_from_bytes(values.data(), values.size(), dtype_of<T>, sizes);
}
template <class T>
Tensor tensor_from(std::initializer_list<T> values, IntList sizes) {
  return detail::tensor_from_bytes(values.begin(), values.size(), dtype_of<T>, sizes);
}
template <class T>
requires(!std::is_same_v<T, bool>) Tensor tensor_from(const std::vector<T>& values, IntList sizes) {
  return detail::tensor_from_bytes(values.data(), values.size(), dtype_of<T>, sizes);
}

}  // namespace lockstep
