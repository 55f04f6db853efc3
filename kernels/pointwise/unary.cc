#include "kernels/pointwise/unary.h"

#include "kernels/common/functors.h"
#include "kernels/pointwise/arithmetic.h"
#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using namespace functors;

template <class F>
void unary(const Out& out, const In& self) {
  with_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, F(), self); });
}

template <class F>
void floating_unary(const Out& out, const In& self) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, F(), self); });
}

void pow(const Out& out, const In& self, Scalar exponent) {
  if (!is_floating(out.dtype)) {
    elementwise<int64_t, int64_t>(out, IntegerPower{exponent.to_int()}, self);
    return;
  }
  // Small exponents use multiplications, which vectorise and are exact to one or two roundings.
  const double e = exponent.to_double();
  with_floating_lane(out.dtype, [&]<class T>() {
    const auto run = [&](const auto& functor) { elementwise<T, T>(out, functor, self); };
    if (e == 0.5) {
      run(Sqrt());
    } else if (e == 1.0) {
      run(WithNumber<Multiply, T>{T(1)});
    } else if (e == 2.0) {
      run(Square());
    } else if (e == 3.0) {
      run(Cube());
    } else if (e == -0.5) {
      run(ReciprocalSqrt());
    } else if (e == -1.0) {
      run(Reciprocal());
    } else {
      run(Power<T>{e});
    }
  });
}

LS_POINTWISE_KERNEL("neg", unary<Negate>);
LS_POINTWISE_KERNEL("abs", unary<Absolute>);
LS_POINTWISE_KERNEL("square", unary<Square>);
LS_POINTWISE_KERNEL("sign", unary<Sign>);
LS_POINTWISE_KERNEL("exp", floating_unary<Exp>);
LS_POINTWISE_KERNEL("log", floating_unary<Log>);
LS_POINTWISE_KERNEL("sqrt", floating_unary<Sqrt>);
LS_POINTWISE_KERNEL("rsqrt", floating_unary<ReciprocalSqrt>);
LS_POINTWISE_KERNEL("reciprocal", floating_unary<Reciprocal>);
LS_POINTWISE_KERNEL("sin", floating_unary<Sin>);
LS_POINTWISE_KERNEL("cos", floating_unary<Cos>);
LS_POINTWISE_KERNEL("pow.Tensor_Scalar", pow);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
