#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

// Access to elements one by one, in row-major order for any strides, without calling operators: the
// reference must not depend on the code under test.

/// Calls `body(offset)` for each element, `offset` in elements from the first.
template <class Body>
void for_each_offset(IntList sizes, IntList strides, Body&& body, size_t dim = 0,
                     int64_t offset = 0) {
  if (dim == sizes.size()) {
    body(offset);
    return;
  }
  for (int64_t i = 0; i < sizes[dim]; ++i) {
    for_each_offset(sizes, strides, body, dim + 1, offset + i * strides[dim]);
  }
}

/// Calls `body(T())` with T the element type of `dtype`.
template <class Body>
auto with_element_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::kBool:
      return body(bool());
    case DType::kU8:
      return body(uint8_t());
    case DType::kI8:
      return body(int8_t());
    case DType::kI16:
      return body(int16_t());
    case DType::kI32:
      return body(int32_t());
    case DType::kI64:
      return body(int64_t());
    case DType::kF16:
      return body(Half());
    case DType::kBF16:
      return body(BFloat16());
    case DType::kF32:
      return body(float());
    case DType::kF64:
      break;
  }
  return body(double());
}

/// The elements of a CPU tensor, each cast to T (double or int64_t).
template <class T>
std::vector<T> elements_as(const Tensor& tensor) {
  std::vector<T> elements;
  elements.reserve(static_cast<size_t>(tensor.numel()));
  with_element_type(tensor.dtype(), [&]<class E>(E) {
    // An uninitialized bool may hold any byte.
    using Stored = std::conditional_t<std::is_same_v<E, bool>, uint8_t, E>;
    const auto* data = reinterpret_cast<const Stored*>(tensor.data<E>());
    for_each_offset(tensor.sizes(), tensor.strides(),
                    [&](int64_t offset) { elements.push_back(static_cast<T>(data[offset])); });
  });
  return elements;
}

/// Writes `elements` to a CPU tensor with as many elements, cast to its dtype.
template <class T>
void set_elements(const Tensor& tensor, const std::vector<T>& elements) {
  size_t next = 0;
  with_element_type(tensor.dtype(), [&]<class E>(E) {
    E* data = tensor.data<E>();
    for_each_offset(tensor.sizes(), tensor.strides(),
                    [&](int64_t offset) { data[offset] = static_cast<E>(elements[next++]); });
  });
}

}  // namespace lockstep
