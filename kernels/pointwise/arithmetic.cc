#include "kernels/pointwise/arithmetic.h"

#include "kernels/common/functors.h"
#include "kernels/pointwise/backend.h"
#include "kernels/pointwise/unary.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using namespace functors;

/// Applies one functor for every dtype, computing in the result's lane.
template <class F>
void binary(const Out& out, const In& self, const In& other) {
  with_lane(out.dtype, [&]<class T>() { elementwise<T, T, T>(out, F(), self, other); });
}

template <class F>
void with_number(const Out& out, const In& self, const Scalar& number) {
  with_lane(out.dtype,
            [&]<class T>() { elementwise<T, T>(out, WithNumber<F, T>{number.to<T>()}, self); });
}

/// a * b in the arithmetic of `dtype`.
Scalar product(DType dtype, const Scalar& a, const Scalar& b) {
  if (is_floating(dtype)) return a.to_double() * b.to_double();
  return Multiply()(a.to_int(), b.to_int());
}

void add(const Out& out, const In& self, const In& other, Scalar alpha) {
  if (alpha.to_double() == 1.0) return binary<Add>(out, self, other);
  with_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, T>(out, AddScaled<T>{alpha.to<T>()}, self, other);
  });
}
void sub(const Out& out, const In& self, const In& other, Scalar alpha) {
  if (alpha.to_double() == 1.0) return binary<Subtract>(out, self, other);
  with_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, T>(out, AddScaled<T>{Negate()(alpha.to<T>())}, self, other);
  });
}
void mul(const Out& out, const In& self, const In& other) { binary<Multiply>(out, self, other); }
void maximum(const Out& out, const In& self, const In& other) { binary<Maximum>(out, self, other); }
void minimum(const Out& out, const In& self, const In& other) { binary<Minimum>(out, self, other); }
void div(const Out& out, const In& self, const In& other) {
  with_floating_lane(out.dtype,
                     [&]<class T>() { elementwise<T, T, T>(out, Divide(), self, other); });
}

void add_number(const Out& out, const In& self, Scalar other, Scalar alpha) {
  with_number<Add>(out, self, product(out.dtype, other, alpha));
}
void sub_number(const Out& out, const In& self, Scalar other, Scalar alpha) {
  with_number<Subtract>(out, self, product(out.dtype, other, alpha));
}
void mul_number(const Out& out, const In& self, Scalar other) {
  with_number<Multiply>(out, self, other);
}
void div_number(const Out& out, const In& self, Scalar other) {
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T>(out, WithNumber<Divide, T>{other.to<T>()}, self);
  });
}

void where(const Out& out, const In& condition, const In& self, const In& other) {
  with_lane(out.dtype, [&]<class T>() {
    elementwise<T, uint8_t, T, T>(out, Where(), condition, self, other);
  });
}
void masked_fill(const Out& out, const In& self, const In& mask, Scalar value) {
  with_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, uint8_t>(out, MaskedFill<T>{value.to<T>()}, self, mask);
  });
}

LS_POINTWISE_KERNEL("add.Tensor", add);
LS_POINTWISE_KERNEL("add.Scalar", add_number);
LS_POINTWISE_KERNEL("sub.Tensor", sub);
LS_POINTWISE_KERNEL("sub.Scalar", sub_number);
LS_POINTWISE_KERNEL("mul.Tensor", mul);
LS_POINTWISE_KERNEL("mul.Scalar", mul_number);
LS_POINTWISE_KERNEL("div.Tensor", div);
LS_POINTWISE_KERNEL("div.Scalar", div_number);
LS_POINTWISE_KERNEL("maximum", maximum);
LS_POINTWISE_KERNEL("minimum", minimum);
LS_POINTWISE_KERNEL("where.self", where);
LS_POINTWISE_KERNEL("masked_fill.Scalar", masked_fill);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
