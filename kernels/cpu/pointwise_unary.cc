#include "core/library.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/functors.h"

namespace lockstep::cpu {

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
  // Small exponents by multiplication: exact to a rounding or two, and vectorised.
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

LS_KERNEL(CPU, "neg", unary<Negate>, Strides::kAny);
LS_KERNEL(CPU, "abs", unary<Absolute>, Strides::kAny);
LS_KERNEL(CPU, "square", unary<Square>, Strides::kAny);
LS_KERNEL(CPU, "sign", unary<Sign>, Strides::kAny);
LS_KERNEL(CPU, "exp", floating_unary<Exp>, Strides::kAny);
LS_KERNEL(CPU, "log", floating_unary<Log>, Strides::kAny);
LS_KERNEL(CPU, "sqrt", floating_unary<Sqrt>, Strides::kAny);
LS_KERNEL(CPU, "rsqrt", floating_unary<ReciprocalSqrt>, Strides::kAny);
LS_KERNEL(CPU, "reciprocal", floating_unary<Reciprocal>, Strides::kAny);
LS_KERNEL(CPU, "sin", floating_unary<Sin>, Strides::kAny);
LS_KERNEL(CPU, "cos", floating_unary<Cos>, Strides::kAny);
LS_KERNEL(CPU, "pow.Tensor_Scalar", pow, Strides::kAny);

}  // namespace

}  // namespace lockstep::cpu
