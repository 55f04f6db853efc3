#include "core/ops/matmul/distance_rules.h"

#include "core/base/check.h"

namespace lockstep::rules {

namespace {

void check_norm(std::string_view op, double p) {
  LS_CHECK(p >= 0, ShapeError, "[{}] p must not be negative, got {}.", op, p);
}

}  // namespace

Outputs cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  LS_CHECK(x1.dim() >= 2 && x2.dim() >= 2 && x1.size(-1) == x2.size(-1), ShapeError,
           "[cdist] expected matrices with rows of one length, got shapes {} and {}.", x1.shape(),
           x2.shape());
  LS_CHECK(is_floating(x1.dtype()) && x1.dtype() == x2.dtype(), DTypeError,
           "[cdist] expected one floating dtype, got {} and {}. Cast with to(dtype).",
           to_string(x1.dtype()), to_string(x2.dtype()));
  check_norm("cdist", p);
  const int64_t mode = compute_mode.value_or(0);
  LS_CHECK(mode >= 0 && mode <= 2, ShapeError, "[cdist] expected a compute_mode in [0, 2], got {}.",
           mode);
  Dims sizes = broadcast("cdist", x1.sizes().first(static_cast<size_t>(x1.dim() - 2)),
                         x2.sizes().first(static_cast<size_t>(x2.dim() - 2)));
  sizes.push_back(x1.size(-2));
  sizes.push_back(x2.size(-2));
  return one(std::move(sizes), x1.dtype());
}

Outputs pdist(const Tensor& self, double p) {
  LS_CHECK(self.dim() == 2, ShapeError, "[pdist] expected a matrix, got shape {}.", self.shape());
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[pdist] expected a floating dtype, got {}. Cast it with to(dtype).", to_string(self));
  check_norm("pdist", p);
  const int64_t n = self.size(0);
  return one({n * (n - 1) / 2}, self.dtype());
}

}  // namespace lockstep::rules
