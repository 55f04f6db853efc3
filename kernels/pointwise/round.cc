#include "kernels/pointwise/round.h"

#include "core/tensor/number_range.h"
#include "kernels/common/functors.h"
#include "kernels/pointwise/arithmetic.h"
#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using namespace functors;

/// Integers are copied unchanged.
template <class F>
void rounded(const Out& out, const In& self) {
  if (!is_floating(out.dtype)) return elementwise<int64_t, int64_t>(out, Identity(), self);
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, F(), self); });
}
void round_decimals(const Out& out, const In& self, int64_t decimals) {
  if (decimals == 0) return rounded<RoundToEven>(out, self);
  const double scale = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T>(out, RoundDecimals<T>{static_cast<T>(scale), decimals < 0}, self);
  });
}
void frac(const Out& out, const In& self) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, Fraction(), self); });
}

void nan_to_num(const Out& out, const In& self, std::optional<double> nan,
                std::optional<double> posinf, std::optional<double> neginf) {
  if (!is_floating(out.dtype)) return elementwise<int64_t, int64_t>(out, Identity(), self);
  with_floating_lane(out.dtype, [&]<class T>() {
    const ReplaceNonFinite<T> functor{static_cast<T>(nan.value_or(0)),
                                      static_cast<T>(posinf.value_or(largest_finite(out.dtype))),
                                      static_cast<T>(neginf.value_or(-largest_finite(out.dtype)))};
    elementwise<T, T>(out, functor, self);
  });
}

void clamp_min(const Out& out, const In& self, Scalar min) {
  with_lane(out.dtype,
            [&]<class T>() { elementwise<T, T>(out, WithNumber<Maximum, T>{min.to<T>()}, self); });
}
void clamp_max(const Out& out, const In& self, Scalar max) {
  with_lane(out.dtype,
            [&]<class T>() { elementwise<T, T>(out, WithNumber<Minimum, T>{max.to<T>()}, self); });
}
void clamp_between(const Out& out, const In& self, Scalar min, Scalar max) {
  with_lane(out.dtype, [&]<class T>() {
    elementwise<T, T>(out, ClampBetween<T>{min.to<T>(), max.to<T>()}, self);
  });
}
void clamp(const Out& out, const In& self, std::optional<Scalar> min, std::optional<Scalar> max) {
  if (!max) return clamp_min(out, self, *min);
  if (!min) return clamp_max(out, self, *max);
  clamp_between(out, self, *min, *max);
}

template <class F>
void bound(const Out& out, const In& self, const In& limit) {
  with_lane(out.dtype, [&]<class T>() { elementwise<T, T, T>(out, F(), self, limit); });
}
void clamp_tensors(const Out& out, const In& self, const In& min, const In& max) {
  if (!max.defined()) return bound<Maximum>(out, self, min);
  if (!min.defined()) return bound<Minimum>(out, self, max);
  with_lane(out.dtype, [&]<class T>() { elementwise<T, T, T, T>(out, Clamp(), self, min, max); });
}

LS_POINTWISE_KERNEL("floor", rounded<Floor>);
LS_POINTWISE_KERNEL("ceil", rounded<Ceil>);
LS_POINTWISE_KERNEL("trunc", rounded<Truncate>);
LS_POINTWISE_KERNEL("round", rounded<RoundToEven>);
LS_POINTWISE_KERNEL("round.decimals", round_decimals);
LS_POINTWISE_KERNEL("frac", frac);
LS_POINTWISE_KERNEL("nan_to_num", nan_to_num);
LS_POINTWISE_KERNEL("clamp", clamp);
LS_POINTWISE_KERNEL("clamp.Tensor", clamp_tensors);
LS_POINTWISE_KERNEL("clamp_min", clamp_min);
LS_POINTWISE_KERNEL("clamp_min.Tensor", bound<Maximum>);
LS_POINTWISE_KERNEL("clamp_max", clamp_max);
LS_POINTWISE_KERNEL("clamp_max.Tensor", bound<Minimum>);
LS_POINTWISE_KERNEL("hardtanh", clamp_between);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
