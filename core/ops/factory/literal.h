#pragma once

#include <initializer_list>
#include <type_traits>
#include <vector>

#include "core/ops/factory/factory.h"

namespace lockstep {

/// Numbers written in braces, nested as deep as the tensor has dimensions: `{{1, 2}, {3, 4}}`.
class Literal {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Literal(T number) : numbers_{Scalar(number)} {}
  /// Throws ShapeError unless all rows have one shape.
  Literal(std::initializer_list<Literal> rows);

  IntList sizes() const { return sizes_; }
  /// In row-major order.
  const std::vector<Scalar>& numbers() const { return numbers_; }

 private:
  Dims sizes_;
  std::vector<Scalar> numbers_;
};

/// A new tensor of these numbers: tensor(3), tensor({1, 2}), tensor({{1, 2}, {3, 4}}). The dtype
/// defaults to bool if all are bools, int64 if all are integers or bools, and else float32. Throws
/// DTypeError for a number that the dtype cannot hold.
Tensor tensor(const Literal& numbers, const TensorOptions& options = {});
/// A new tensor of one dimension; the dtype defaults to that of T.
template <class T>
requires(!std::is_same_v<T, bool>) Tensor
    tensor(const std::vector<T>& numbers, const TensorOptions& options = {}) {
  const Tensor result = tensor_from(numbers, {static_cast<int64_t>(numbers.size())});
  return detail::with_options(result, options);
}

}  // namespace lockstep
