#include "core/ops/loss/loss_rules.h"

#include "core/base/check.h"

namespace lockstep::rules {

void check_floating(std::string_view op, const Tensor& self) {
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[{}] expected a floating input, got {}. Cast it with to(dtype).", op,
           to_string(self.dtype()));
}

void check_reduction(std::string_view op, int64_t reduction) {
  LS_CHECK(reduction >= 0 && reduction <= 2, ShapeError,
           "[{}] expected reduction 0 (none), 1 (mean) or 2 (sum), got {}.", op, reduction);
}

}  // namespace lockstep::rules
