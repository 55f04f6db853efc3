#pragma once

#include <span>
#include <type_traits>

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that make tensors. Options left out default to float32 on default_device(), or, in the
// `*_like` family, to those of `self`. With `options.requires_grad` the result is an autograd leaf.

/// Uninitialised elements.
Tensor empty(IntList sizes, TensorOptions options = {});
Tensor zeros(IntList sizes, TensorOptions options = {});
Tensor ones(IntList sizes, TensorOptions options = {});
/// Every element `value`. The dtype defaults to bool, int64 or float32, by the kind of `value`.
Tensor full(IntList sizes, const Scalar& value, TensorOptions options = {});
/// A 0-d tensor. The dtype defaults to float32.
Tensor scalar_tensor(const Scalar& value, TensorOptions options = {});

/// start, start + step, ... below (for negative steps: above) end. The dtype defaults to int64 when
/// all three numbers are integers, else to float32.
Tensor arange(const Scalar& end, TensorOptions options = {});
Tensor arange(const Scalar& start, const Scalar& end, TensorOptions options = {});
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
              TensorOptions options = {});

/// Uninitialised elements with the given strides, which may leave gaps or overlap.
Tensor empty_strided(IntList sizes, IntList strides, TensorOptions options = {});

/// Uninitialised elements with self's shape, and with its strides when they leave no gaps.
Tensor empty_like(const Tensor& self, TensorOptions options = {});
Tensor zeros_like(const Tensor& self, TensorOptions options = {});
Tensor ones_like(const Tensor& self, TensorOptions options = {});
Tensor full_like(const Tensor& self, const Scalar& value, TensorOptions options = {});

namespace detail {
/// A new tensor of `sizes` with `count` elements copied from `values`.
Tensor tensor_from_bytes(const void* values, size_t count, DType dtype, IntList sizes);
/// `tensor`, which is not recorded, with the dtype, device and requires_grad that the options name.
Tensor with_options(const Tensor& tensor, const TensorOptions& options);
}  // namespace detail

/// A new tensor on default_device() with these elements in row-major order. Throws ShapeError when
/// their number does not match `sizes`.
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
