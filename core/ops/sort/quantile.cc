#include "core/ops/sort/quantile.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_formula.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/sort.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

using MaybeDim = std::optional<int64_t>;

enum class Interpolation { kLinear, kLower, kHigher, kMidpoint, kNearest };

Interpolation interpolation_of(std::string_view op, std::string_view text) {
  constexpr std::string_view kNames[] = {"linear", "lower", "higher", "midpoint", "nearest"};
  for (size_t i = 0; i < 5; ++i) {
    if (text == kNames[i]) return static_cast<Interpolation>(i);
  }
  throw Error(fmt::format(
      "[{}] expected an interpolation linear, lower, higher, midpoint or nearest, got \"{}\".", op,
      text));
}

void check(std::string_view op, const Tensor& self, const Tensor& q) {
  LS_CHECK(self.numel() > 0, ShapeError, "[{}] expected at least one element, got shape {}.", op,
           self.shape());
  LS_CHECK(q.dim() <= 1, ShapeError, "[{}] expected a number or a vector q, got shape {}.", op,
           q.shape());
  LS_CHECK(is_floating(self.dtype()) && q.dtype() == self.dtype(), DTypeError,
           "[{}] expected self and q of one floating dtype, got {} and {}. Cast one with "
           "to(dtype).",
           op, to_string(self), to_string(q));
  // On other devices, and under vmap, a rank out of range throws where it is looked up.
  if (q.device() == kCPU && !q.key_set().has(Key::kVmap)) {
    LS_CHECK(all(le(abs(q - 0.5), 0.5)).item<bool>(), Error, "[{}] expected q between 0 and 1.",
             op);
  }
}

/// self with the reduced elements in the last dimension, and the sizes of the others in the result.
struct Lines {
  Tensor elements;
  Dims sizes;
};
Lines lines_of(std::string_view op, const Tensor& self, MaybeDim dim, bool keepdim) {
  if (!dim || self.dim() == 0) {
    if (dim) wrap_dim(op, *dim, 0);
    const auto rank = static_cast<size_t>(keepdim ? self.dim() : 0);
    return {self.reshape({self.numel()}), Dims(rank, 1)};
  }
  const int64_t d = wrap_dim(op, *dim, self.dim());
  Dims order;
  Dims sizes;
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (i != d) order.push_back(i);
    if (i != d || keepdim) sizes.push_back(i == d ? 1 : self.size(i));
  }
  order.push_back(d);
  return {self.permute(order), sizes};
}

Tensor quantiles(std::string_view op, const Tensor& self, const Tensor& q, MaybeDim dim,
                 bool keepdim, std::string_view interpolation, bool ignores_nan) {
  const Interpolation mode = interpolation_of(op, interpolation);
  check(op, self, q);
  const Lines lines = lines_of(op, self, dim, keepdim);
  const int64_t count = lines.elements.size(-1);
  constexpr int64_t kMost = int64_t{1} << 24;  // ranks up to this are exact in float32
  LS_CHECK(count <= kMost, ShapeError, "[{}] expected at most {} elements along a line, got {}.",
           op, kMost, count);
  const DType wide = promote(self.dtype(), DType::kF32);
  const Tensor sorted = std::get<0>(sort(lines.elements, -1)).to(wide);
  const Tensor shares = q.reshape({q.numel()}).to(wide);
  const Tensor is_nan = isnan(sorted.detach());
  Tensor ranks;  // [..., q], from 0 to count - 1
  if (ignores_nan) {
    const Tensor last = (sum(logical_not(is_nan), {-1}, true) - 1).to(wide);
    ranks = shares * clamp_min(last, 0);
  } else {
    // NaNs are at the end.
    const auto last = static_cast<double>(count - 1);
    ranks = masked_fill(shares * last, any(is_nan, -1, true), last);
  }
  if (mode == Interpolation::kLower) ranks = floor(ranks);
  if (mode == Interpolation::kHigher) ranks = ceil(ranks);
  if (mode == Interpolation::kNearest) ranks = round(ranks);
  const Tensor below = ranks.detach().to(DType::kI64);
  Tensor values = gather(sorted, -1, below);
  if (mode == Interpolation::kLinear || mode == Interpolation::kMidpoint) {
    const Tensor above = gather(sorted, -1, ceil(ranks.detach()).to(DType::kI64));
    const Tensor weight =
        mode == Interpolation::kLinear ? ranks - below.to(wide) : full_like(ranks.detach(), 0.5);
    values = lerp(values, above, weight);
  }
  Dims sizes = lines.sizes;
  if (q.dim() == 1) {
    sizes.insert(0, q.numel());
    Dims order{values.dim() - 1};
    for (int64_t i = 0; i + 1 < values.dim(); ++i) order.push_back(i);
    values = values.permute(order);
  }
  return values.reshape(sizes).to(self.dtype());
}

Tensor as_tensor(double q, const Tensor& self) {
  return scalar_tensor(q, {self.dtype(), self.device()});
}

}  // namespace

LS_OP(quantile, Tensor(const Tensor&, const Tensor&, MaybeDim, bool, std::string_view),
      "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
      "interpolation='linear') -> Tensor")
    .doc("The q-quantiles of all elements or along a dimension.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& q, MaybeDim dim, bool keepdim,
                  std::string_view interpolation) {
      return quantiles("quantile", self, q, dim, keepdim, interpolation, false);
    });
Tensor quantile(const Tensor& self, const Tensor& q, MaybeDim dim, bool keepdim,
                std::string_view interpolation) {
  return op_quantile(self, q, dim, keepdim, interpolation);
}
LS_OP(quantile_out,
      const Tensor&(const Tensor&, const Tensor&, MaybeDim, bool, std::string_view, const Tensor&),
      "quantile.out(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
      "interpolation='linear', Tensor(a!) out) -> Tensor(a!)")
    .doc("quantile, written into out.")
    .composite([](const Tensor& self, const Tensor& q, MaybeDim dim, bool keepdim,
                  std::string_view interpolation, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_quantile(self, q, dim, keepdim, interpolation));
    });
LS_OP(quantile_number, Tensor(const Tensor&, double, MaybeDim, bool, std::string_view),
      "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
      "interpolation='linear') -> Tensor")
    .doc("A quantile of all elements or along a dimension.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, double q, MaybeDim dim, bool keepdim,
                  std::string_view interpolation) {
      return quantiles("quantile", self, as_tensor(q, self), dim, keepdim, interpolation, false);
    });
LS_OP(quantile_number_out,
      const Tensor&(const Tensor&, double, MaybeDim, bool, std::string_view, const Tensor&),
      "quantile.scalar_out(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
      "interpolation='linear', Tensor(a!) out) -> Tensor(a!)")
    .doc("quantile, written into out.")
    .composite([](const Tensor& self, double q, MaybeDim dim, bool keepdim,
                  std::string_view interpolation, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_quantile_number(self, q, dim, keepdim, interpolation));
    });

LS_OP(nanquantile, Tensor(const Tensor&, const Tensor&, MaybeDim, bool, std::string_view),
      "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
      "interpolation='linear') -> Tensor")
    .doc("The q-quantiles of the elements that are not NaN.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& q, MaybeDim dim, bool keepdim,
                  std::string_view interpolation) {
      return quantiles("nanquantile", self, q, dim, keepdim, interpolation, true);
    });
Tensor nanquantile(const Tensor& self, const Tensor& q, MaybeDim dim, bool keepdim,
                   std::string_view interpolation) {
  return op_nanquantile(self, q, dim, keepdim, interpolation);
}
LS_OP(nanquantile_out,
      const Tensor&(const Tensor&, const Tensor&, MaybeDim, bool, std::string_view, const Tensor&),
      "nanquantile.out(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
      "interpolation='linear', Tensor(a!) out) -> Tensor(a!)")
    .doc("nanquantile, written into out.")
    .composite([](const Tensor& self, const Tensor& q, MaybeDim dim, bool keepdim,
                  std::string_view interpolation, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_nanquantile(self, q, dim, keepdim, interpolation));
    });
LS_OP(nanquantile_number, Tensor(const Tensor&, double, MaybeDim, bool, std::string_view),
      "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
      "interpolation='linear') -> Tensor")
    .doc("A quantile of the elements that are not NaN.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, double q, MaybeDim dim, bool keepdim,
                  std::string_view interpolation) {
      return quantiles("nanquantile", self, as_tensor(q, self), dim, keepdim, interpolation, true);
    });
LS_OP(nanquantile_number_out,
      const Tensor&(const Tensor&, double, MaybeDim, bool, std::string_view, const Tensor&),
      "nanquantile.scalar_out(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
      "interpolation='linear', Tensor(a!) out) -> Tensor(a!)")
    .doc("nanquantile, written into out.")
    .composite([](const Tensor& self, double q, MaybeDim dim, bool keepdim,
                  std::string_view interpolation, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_nanquantile_number(self, q, dim, keepdim, interpolation));
    });

}  // namespace lockstep
