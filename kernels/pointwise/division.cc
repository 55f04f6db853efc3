#include "kernels/pointwise/division.h"

#include "kernels/pointwise/arithmetic.h"
#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using namespace functors;

const ZeroDivision kOfFmod("fmod"), kOfRemainder("remainder"), kOfDiv("div");

template <class F, class A, class B>
void floating(const Out& out, const A& self, const B& other) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T, T>(out, F(), self, other); });
}

template <class Real, class Integer, class A, class B>
void divide(const ZeroDivision& op, const Out& out, const A& self, const B& other) {
  if (is_floating(out.dtype)) return floating<Real>(out, self, other);
  ZeroDivisor found(op, out, tensor_of(self), tensor_of(other));
  elementwise<int64_t, int64_t, int64_t>(out, Guarded<Integer>{found.flag()}, self, other);
  found.check();
}

template <class A, class B>
void fmod_of(const Out& out, const A& self, const B& other) {
  divide<FMod, IntegerRemainder>(kOfFmod, out, self, other);
}
template <class A, class B>
void remainder_of(const Out& out, const A& self, const B& other) {
  divide<Remainder, FlooredIntegerRemainder>(kOfRemainder, out, self, other);
}
template <class B>
void quotient_of(const Out& out, const In& self, const B& other,
                 std::optional<std::string_view> mode) {
  if (!mode) {
    floating<Divide>(out, self, other);
  } else if (*mode == "trunc") {
    divide<DivideTruncate, Quotient>(kOfDiv, out, self, other);
  } else {
    divide<DivideFloor, FlooredQuotient>(kOfDiv, out, self, other);
  }
}

void fmod(const Out& out, const In& self, const In& other) { fmod_of(out, self, other); }
void fmod_number(const Out& out, const In& self, Scalar other) {
  fmod_of(out, self, NumberOperand(other, out.dtype));
}
void remainder(const Out& out, const In& self, const In& other) { remainder_of(out, self, other); }
void remainder_number(const Out& out, const In& self, Scalar other) {
  remainder_of(out, self, NumberOperand(other, out.dtype));
}
void remainder_of_number(const Out& out, Scalar self, const In& other) {
  remainder_of(out, NumberOperand(self, out.dtype), other);
}
void div_mode(const Out& out, const In& self, const In& other,
              std::optional<std::string_view> mode) {
  quotient_of(out, self, other, mode);
}
void div_mode_number(const Out& out, const In& self, Scalar other,
                     std::optional<std::string_view> mode) {
  quotient_of(out, self, NumberOperand(other, out.dtype), mode);
}

LS_POINTWISE_KERNEL("fmod.Tensor", fmod);
LS_POINTWISE_KERNEL("fmod.Scalar", fmod_number);
LS_POINTWISE_KERNEL("remainder.Tensor", remainder);
LS_POINTWISE_KERNEL("remainder.Scalar", remainder_number);
LS_POINTWISE_KERNEL("remainder.Scalar_Tensor", remainder_of_number);
LS_POINTWISE_KERNEL("div.Tensor_mode", div_mode);
LS_POINTWISE_KERNEL("div.Scalar_mode", div_mode_number);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
