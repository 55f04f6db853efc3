// Counts of elements in parts of a range; declared in quantile.h.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/sort/quantile.h"

namespace lockstep {

namespace rules {
namespace {

Outputs histc(const Tensor& self, int64_t bins, Scalar min, Scalar max) {
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[histc] expected a floating dtype, got {}. Cast it with to(dtype).", to_string(self));
  LS_CHECK(bins > 0, Error, "[histc] expected at least one bin, got {}.", bins);
  LS_CHECK(min.to_double() <= max.to_double(), Error,
           "[histc] expected a range from min to max, got {} to {}.", to_string(min),
           to_string(max));
  return one({bins}, self.dtype());
}

}  // namespace
}  // namespace rules

LS_OP(histc, Tensor(const Tensor&, int64_t, Scalar, Scalar),
      "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor")
    .doc("The number of elements in each of equal parts of a range.")
    .structured(rules::histc)
    .out()
    .not_differentiable("counts do not change with the elements");
Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  return op_histc(self, bins, min, max);
}

}  // namespace lockstep
