#include "core/ops/loss/loss_rules.h"

#include "core/base/check.h"

namespace lockstep::rules {

void check_floating(std::string_view op, const Tensor& self) {
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[{}] expected a floating input, got {}. Cast it with to(dtype).", op,
           to_string(self.dtype()));
}

void check_class_numbers(std::string_view op, const Tensor& target) {
  const DType dtype = target.dtype();
  LS_CHECK(dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kU8, DTypeError,
           "[{}] targets are class numbers: expected int64, int32 or uint8, got {}.", op,
           to_string(dtype));
}

void check_class_targets(std::string_view op, int64_t rows, const Tensor& target) {
  LS_CHECK(target.dim() == 1 && target.size(0) == rows, ShapeError,
           "[{}] expected a target for each of {} rows, got targets of shape {}.", op, rows,
           target.shape());
  check_class_numbers(op, target);
}

void check_reduction(std::string_view op, int64_t reduction) {
  LS_CHECK(reduction >= 0 && reduction <= 2, ShapeError,
           "[{}] expected reduction 0 (none), 1 (mean) or 2 (sum), got {}.", op, reduction);
}

}  // namespace lockstep::rules
