#include "core/ops/factory/literal.h"

#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/tensor/number_range.h"

namespace lockstep {
namespace {

DType default_dtype(const std::vector<Scalar>& numbers) {
  if (numbers.empty()) return DType::kF32;
  DType dtype = DType::kBool;
  for (const Scalar& number : numbers) {
    if (number.is_floating()) return DType::kF32;
    if (number.kind() == DType::kI64) dtype = DType::kI64;
  }
  return dtype;
}

/// The numbers as T, row by row.
template <class T>
Tensor filled(const Literal& numbers) {
  std::vector<T> values;
  values.reserve(numbers.numbers().size());
  for (const Scalar& number : numbers.numbers()) values.push_back(number.to<T>());
  return tensor_from(values, numbers.sizes());
}

}  // namespace

Literal::Literal(std::initializer_list<Literal> rows) {
  sizes_.push_back(static_cast<int64_t>(rows.size()));
  if (rows.size() == 0) return;
  const Dims& first = rows.begin()->sizes_;
  for (const int64_t size : first) sizes_.push_back(size);
  for (const Literal& row : rows) {
    LS_CHECK(same(row.sizes_, first), ShapeError,
             "[tensor] the rows differ in shape: expected {} like the first, got {} in row {}.",
             to_string(first), to_string(row.sizes_), &row - rows.begin());
    numbers_.insert(numbers_.end(), row.numbers_.begin(), row.numbers_.end());
  }
}

Tensor tensor(const Literal& numbers, const TensorOptions& options) {
  TensorOptions wanted = options;
  wanted.dtype = options.dtype.value_or(default_dtype(numbers.numbers()));
  bool has_fractions = false;
  for (const Scalar& number : numbers.numbers()) {
    check_holds("tensor", "value", *wanted.dtype, number);
    has_fractions |= number.is_floating();
  }
  return detail::with_options(has_fractions ? filled<double>(numbers) : filled<int64_t>(numbers),
                              wanted);
}

}  // namespace lockstep
