#include "kernels/pointwise/pairs.h"

#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using namespace functors;

template <class F>
void floating(const Out& out, const In& self, const In& other) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T, T>(out, F(), self, other); });
}
template <class F>
void any(const Out& out, const In& self, const In& other) {
  with_lane(out.dtype, [&]<class T>() { elementwise<T, T, T>(out, F(), self, other); });
}
template <class F>
void integral(const Out& out, const In& self, const In& other) {
  elementwise<int64_t, int64_t, int64_t>(out, F(), self, other);
}
void nextafter(const Out& out, const In& self, const In& other) {
  switch (out.dtype) {
    case DType::kBF16:
      return elementwise<float, float, float>(out, NextAfterBF16(), self, other);
    case DType::kF16:
      return elementwise<float, float, float>(out, NextAfterF16(), self, other);
    default:
      return floating<NextAfter>(out, self, other);
  }
}
void signbit(const Out& out, const In& self) {
  with_lane(self.dtype, [&]<class T>() { elementwise<uint8_t, T>(out, SignBit(), self); });
}

LS_POINTWISE_KERNEL("copysign.Tensor", floating<CopySign>);
LS_POINTWISE_KERNEL("fmax", any<LargerNumber>);
LS_POINTWISE_KERNEL("fmin", any<SmallerNumber>);
LS_POINTWISE_KERNEL("heaviside", any<Step>);
LS_POINTWISE_KERNEL("gcd", integral<GreatestDivisor>);
LS_POINTWISE_KERNEL("lcm", integral<LeastMultiple>);
LS_POINTWISE_KERNEL("logaddexp2", floating<LogAddExp2>);
LS_POINTWISE_KERNEL("special_xlog1py", floating<XLog1PY>);
LS_POINTWISE_KERNEL("special_zeta", floating<HurwitzZeta>);
LS_POINTWISE_KERNEL("nextafter", nextafter);
LS_POINTWISE_KERNEL("signbit", signbit);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
