#include "core/ops/reduce/reduce_composite.h"

#include <cmath>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

namespace {

using MaybeDims = std::optional<IntList>;
using MaybeDType = std::optional<DType>;
using TwoTensors = std::tuple<Tensor, Tensor>;

Dims dims_or_all(std::optional<int64_t> dim) { return dim ? Dims{*dim} : Dims(); }

}  // namespace

LS_OP(aminmax, TwoTensors(const Tensor&, std::optional<int64_t>, bool),
      "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)")
    .doc("The smallest and the largest element, of all or along a dimension.")
    .composite([](const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
      const Dims dims = dims_or_all(dim);
      return TwoTensors(amin(self, dims, keepdim), amax(self, dims, keepdim));
    });
TwoTensors aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return op_aminmax(self, dim, keepdim);
}
LS_OP(aminmax_out,
      TwoTensors(const Tensor&, std::optional<int64_t>, bool, const Tensor&, const Tensor&),
      "aminmax.out(Tensor self, *, int? dim=None, bool keepdim=False, Tensor(a!) min, "
      "Tensor(b!) max) -> (Tensor(a!) min, Tensor(b!) max)")
    .doc("aminmax, written into min and max.")
    .composite([](const Tensor& self, std::optional<int64_t> dim, bool keepdim, const Tensor& min,
                  const Tensor& max) {
      return write_results(op_aminmax(self, dim, keepdim), min, max);
    });

LS_OP(nansum, Tensor(const Tensor&, MaybeDims, bool, MaybeDType),
      "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
      "Tensor")
    .doc("The sum of the elements that are not NaN.")
    .composite([](const Tensor& self, MaybeDims dim, bool keepdim, MaybeDType dtype) {
      const Tensor numbers = is_floating(self.dtype()) ? masked_fill(self, isnan(self), 0) : self;
      return sum(numbers, dim.value_or(IntList()), keepdim, dtype);
    });
Tensor nansum(const Tensor& self, IntList dims, bool keepdim, MaybeDType dtype) {
  return op_nansum(self, dims, keepdim, dtype);
}
LS_OP(nansum_out, const Tensor&(const Tensor&, MaybeDims, bool, MaybeDType, const Tensor&),
      "nansum.out(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
      "dtype=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("nansum, written into out.")
    .composite([](const Tensor& self, MaybeDims dim, bool keepdim, MaybeDType dtype,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_nansum(self, dim, keepdim, dtype));
    });

LS_OP(nanmean, Tensor(const Tensor&, MaybeDims, bool, MaybeDType),
      "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
      "Tensor")
    .doc("The mean of the elements that are not NaN.")
    .composite([](const Tensor& self, MaybeDims dim, bool keepdim, MaybeDType dtype) {
      LS_CHECK(is_floating(self.dtype()), DTypeError,
               "[nanmean] expected a floating dtype, got {}. Cast it with to(dtype).",
               to_string(self));
      const Tensor count = sum(logical_not(isnan(self.detach())), dim.value_or(IntList()), keepdim);
      return op_nansum(self, dim, keepdim, dtype) / count;
    });
Tensor nanmean(const Tensor& self, IntList dims, bool keepdim, MaybeDType dtype) {
  return op_nanmean(self, dims, keepdim, dtype);
}
LS_OP(nanmean_out, const Tensor&(const Tensor&, MaybeDims, bool, MaybeDType, const Tensor&),
      "nanmean.out(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
      "dtype=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("nanmean, written into out.")
    .composite([](const Tensor& self, MaybeDims dim, bool keepdim, MaybeDType dtype,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_nanmean(self, dim, keepdim, dtype));
    });

LS_OP(allclose, bool(const Tensor&, const Tensor&, double, double, bool),
      "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
      "equal_nan=False) -> bool")
    .doc("Whether all elements of two tensors are close, as isclose sees it.")
    .composite([](const Tensor& self, const Tensor& other, double rtol, double atol,
                  bool equal_nan) {
      return all(isclose(self, other, rtol, atol, equal_nan)).item<bool>();
    });
bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return op_allclose(self, other, rtol, atol, equal_nan);
}

LS_OP(renorm, Tensor(const Tensor&, Scalar, int64_t, Scalar),
      "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor")
    .doc("Each slice along a dimension whose p-norm exceeds maxnorm, scaled down to maxnorm.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, Scalar p, int64_t dim, Scalar maxnorm) {
      LS_CHECK(self.dim() > 1, ShapeError,
               "[renorm] expected at least two dimensions, got shape {}.", self.shape());
      LS_CHECK(p.to_double() > 0, Error, "[renorm] expected a positive p, got {}.", to_string(p));
      const double most = maxnorm.to_double();
      LS_CHECK(most >= 0, Error, "[renorm] expected a maxnorm of at least 0, got {}.", most);
      if (std::isinf(most)) return self.clone();
      const int64_t kept = wrap_dim("renorm", dim, self.dim());
      Dims others;
      for (int64_t i = 0; i < self.dim(); ++i) {
        if (i != kept) others.push_back(i);
      }
      const Tensor norm =
          linalg_vector_norm(self, p, others, true, promote(self.dtype(), DType::kF32));
      const Tensor shrunk = reciprocal(norm + 1e-7) * most;
      return mul(self, where(gt(norm, most), shrunk, ones_like(norm))).to(self.dtype());
    });
Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  return op_renorm(self, p, dim, maxnorm);
}
LS_OP(renorm_out, const Tensor&(const Tensor&, Scalar, int64_t, Scalar, const Tensor&),
      "renorm.out(Tensor self, Scalar p, int dim, Scalar maxnorm, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("renorm, written into out.")
    .composite([](const Tensor& self, Scalar p, int64_t dim, Scalar maxnorm,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_renorm(self, p, dim, maxnorm));
    });
LS_OP(renorm_in_place, const Tensor&(const Tensor&, Scalar, int64_t, Scalar),
      "renorm_(Tensor(a!) self, Scalar p, int dim, Scalar maxnorm) -> Tensor(a!)")
    .doc("renorm, written into self.")
    .composite([](const Tensor& self, Scalar p, int64_t dim, Scalar maxnorm) -> const Tensor& {
      // The derivative needs self as it was.
      return copy_(self, op_renorm(self.clone(), p, dim, maxnorm));
    });

}  // namespace lockstep
