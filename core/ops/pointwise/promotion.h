#pragma once

#include <optional>

#include "core/tensor/outputs.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// Type promotion: finds the dtype in which operands are computed. There are three categories:
/// tensors with dimensions, 0-d tensors, and numbers. A category counts only if it has a higher
/// kind (bool < integer < float) than the categories before it: `int8[3] + int64[]` stays int8,
/// `int8[3] + 1.5` becomes float32. The rules are those of torch.result_type.
class Promotion {
 public:
  Promotion& add(const Tensor& tensor);
  /// A number counts as bool, int64 or float32.
  Promotion& add(const Scalar& number);
  DType result() const;

 private:
  std::optional<DType> dimensioned_;
  std::optional<DType> zero_dim_;
  std::optional<DType> number_;
};

DType result_type(const Tensor& a, const Tensor& b);
DType result_type(const Tensor& a, const Scalar& b);
/// float32 for bools and integers, else the dtype itself.
constexpr DType to_floating(DType dtype) { return is_floating(dtype) ? dtype : DType::kF32; }

}  // namespace lockstep
