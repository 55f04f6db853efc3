#include "core/ops/pointwise/promotion.h"

namespace lockstep {

namespace {

void merge(std::optional<DType>& into, DType dtype) { into = into ? promote(*into, dtype) : dtype; }

/// Combines the dtypes of two categories: that of higher priority, unless `lower` has a higher
/// kind.
std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (is_floating(*higher)) return higher;
  if (*higher == DType::kBool || is_floating(*lower)) return promote(*higher, *lower);
  return higher;
}

DType dtype_of_number(const Scalar& number) {
  return number.is_floating() ? DType::kF32 : number.kind();
}

}  // namespace

Promotion& Promotion::add(const Tensor& tensor) {
  merge(tensor.dim() > 0 ? dimensioned_ : zero_dim_, tensor.dtype());
  return *this;
}

Promotion& Promotion::add(const Scalar& number) {
  merge(number_, dtype_of_number(number));
  return *this;
}

DType Promotion::result() const {
  return combine(dimensioned_, combine(zero_dim_, number_)).value_or(DType::kF32);
}

DType result_type(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) [[likely]] {
    return a.dtype();
  }
  return Promotion().add(a).add(b).result();
}

DType result_type(const Tensor& a, const Scalar& b) {
  return *combine(a.dtype(), dtype_of_number(b));
}

}  // namespace lockstep
