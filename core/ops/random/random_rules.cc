#include "core/ops/random/random_rules.h"

#include <limits>

#include "core/base/error.h"
#include "core/ops/pointwise/pointwise_layout.h"

namespace lockstep::rules {

Outputs like_self(const Tensor& self) { return pointwise_result("random", self.dtype(), {&self}); }

std::pair<int64_t, int64_t> integer_range(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {0, 1};
    case DType::kU8:
      return {0, 255};
    case DType::kI8:
      return {-128, 127};
    case DType::kI16:
      return {-32768, 32767};
    case DType::kI32:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case DType::kF16:
      return {-65504, 65504};
    default:
      return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
}

std::optional<int64_t> end_of_exact_integers(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 2;
    case DType::kU8:
      return 256;
    case DType::kI8:
      return 128;
    case DType::kI16:
      return 1 << 15;
    case DType::kI32:
      return int64_t{1} << 31;
    case DType::kI64:
      return std::nullopt;
    case DType::kBF16:
      return (1 << 8) + 1;
    case DType::kF16:
      return (1 << 11) + 1;
    case DType::kF32:
      return (1 << 24) + 1;
    case DType::kF64:
      return (int64_t{1} << 53) + 1;
  }
  throw InternalError("[internal] unknown dtype.");
}

}  // namespace lockstep::rules
