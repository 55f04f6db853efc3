// Statistics of several variables; declared in matrix_functions.h.

#include <cmath>
#include <numbers>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/linalg/matrix_functions.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/pointwise/pointwise_special.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

void check_weights(const char* name, OptionalTensor weights, int64_t observations, bool floats) {
  if (!weights) return;
  LS_CHECK(weights->dim() <= 1 && weights->numel() == observations, ShapeError,
           "[cov] expected {} for {} observations, got shape {}.", name, observations,
           weights->shape());
  LS_CHECK(floats ? is_floating(weights->dtype()) : is_integral(weights->dtype()), DTypeError,
           "[cov] {} must have {} dtype, got {}.", name, floats ? "a floating" : "an integer",
           to_string(*weights));
}

Tensor cov_body(const Tensor& self, int64_t correction, OptionalTensor fweights,
                OptionalTensor aweights) {
  LS_CHECK(self.dim() <= 2, ShapeError, "[cov] expected at most two dimensions, got shape {}.",
           self.shape());
  LS_CHECK(self.dtype() != DType::kBool, DTypeError,
           "[cov] expected numbers, got bool. Cast it with to(dtype).");
  const Tensor all = self.dim() < 2 ? self.reshape({1, self.numel()}) : self;
  const int64_t observations = all.size(1);
  check_weights("fweights", fweights, observations, false);
  check_weights("aweights", aweights, observations, true);
  Tensor weights = fweights.value_or_undefined();
  if (aweights) weights = fweights ? *fweights * *aweights : *aweights;

  Tensor mean, divisor;
  if (weights.defined()) {
    const Tensor total = sum(weights);
    mean = sum(all * weights, {1}) / total;
    // The sum of squares of the weights, counted as often as each occurs, relative to their sum.
    const Tensor lost = aweights && correction != 0
                            ? sum(weights * *aweights) / total * Scalar(correction)
                            : Tensor();
    divisor = lost.defined() ? total - lost : total - Scalar(correction);
  } else {
    mean = sum(all, {1}) / Scalar(observations);
    divisor = scalar_tensor(static_cast<double>(observations) - static_cast<double>(correction),
                            mean.options());
  }
  divisor = masked_fill(divisor, le(divisor, 0), 0);
  const Tensor distance = all - mean.unsqueeze(1);
  const Tensor weighted = weights.defined() ? distance * weights : distance;
  const DType dtype = result_type(distance, weighted);
  const Tensor sums = mm(to(distance, dtype), to(weighted, dtype).t());
  const Tensor result = sums / divisor;
  return all.size(0) == 1 ? result.reshape({}) : result;
}

}  // namespace

LS_OP(cov, Tensor(const Tensor&, int64_t, OptionalTensor, OptionalTensor),
      "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> "
      "Tensor")
    .doc("Covariances of the rows of a matrix.")
    .autocast(Autocast::kF32)
    .composite(cov_body);
Tensor cov(const Tensor& self, int64_t correction, OptionalTensor fweights,
           OptionalTensor aweights) {
  return op_cov(self, correction, fweights, aweights);
}

LS_OP(corrcoef, Tensor(const Tensor&), "corrcoef(Tensor self) -> Tensor")
    .doc("Coefficients of correlation of the rows of a matrix.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self) {
      LS_CHECK(self.dim() <= 2, ShapeError,
               "[corrcoef] expected at most two dimensions, got shape {}.", self.shape());
      const Tensor covariance = op_cov(self, 1, {}, {});
      if (covariance.dim() == 0) return covariance / covariance;
      const Tensor deviation = sqrt(diagonal(covariance));
      return clamp(covariance / deviation.unsqueeze(1) / deviation, Scalar(-1), Scalar(1));
    });
Tensor corrcoef(const Tensor& self) { return op_corrcoef(self); }

LS_OP(mvlgamma, Tensor(const Tensor&, int64_t), "mvlgamma(Tensor self, int p) -> Tensor")
    .doc("The logarithm of the multivariate gamma function of dimension p.")
    .composite([](const Tensor& self, int64_t p) {
      LS_CHECK(p >= 1, Error, "[mvlgamma] expected a dimension p of at least 1, got {}.", p);
      const double dimension = static_cast<double>(p);
      const DType dtype = is_floating(self.dtype()) ? self.dtype() : DType::kF32;
      const Tensor steps =
          arange(Scalar(int64_t{0}), Scalar(p), Scalar(int64_t{1}), {dtype, self.device()});
      const Tensor each = lgamma(self.unsqueeze(-1) - steps * 0.5);
      return sum(each, {-1}) + Scalar(dimension * (dimension - 1) / 4 * std::log(std::numbers::pi));
    });
Tensor mvlgamma(const Tensor& self, int64_t p) { return op_mvlgamma(self, p); }

LS_OP(mvlgamma_in_place, const Tensor&(const Tensor&, int64_t),
      "mvlgamma_(Tensor(a!) self, int p) -> Tensor(a!)")
    .doc("mvlgamma, written into self.")
    .composite([](const Tensor& self, int64_t p) -> const Tensor& {
      return copy_(self, op_mvlgamma(self, p));
    });

LS_OP(mvlgamma_out, const Tensor&(const Tensor&, int64_t, const Tensor&),
      "mvlgamma.out(Tensor self, int p, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("mvlgamma, written into out.")
    .composite([](const Tensor& self, int64_t p, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_mvlgamma(self, p));
    });

}  // namespace lockstep
