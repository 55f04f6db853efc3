#include "core/library.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/functors.h"

namespace lockstep::cpu {

namespace {

using namespace functors;

/// The number as an element of the tensor: 0.1 in bfloat16 is what a bfloat16 0.1 equals.
template <class T>
T as_element(const Scalar& number, DType dtype) {
  if (dtype == DType::kBF16) return T(static_cast<float>(number.to<BFloat16>()));
  if (dtype == DType::kF16) return T(static_cast<float>(number.to<Half>()));
  return number.to<T>();
}

template <class F>
void comparison(const Out& out, const In& self, const In& other) {
  with_lane(self.dtype, [&]<class T>() { elementwise<uint8_t, T, T>(out, F(), self, other); });
}
template <class F>
void number_comparison(const Out& out, const In& self, Scalar other) {
  with_lane(self.dtype, [&]<class T>() {
    elementwise<uint8_t, T>(out, WithNumber<F, T>{as_element<T>(other, self.dtype)}, self);
  });
}
template <class F>
void predicate(const Out& out, const In& self) {
  with_lane(self.dtype, [&]<class T>() { elementwise<uint8_t, T>(out, F(), self); });
}

LS_KERNEL(CPU, "eq.Tensor", comparison<Equal>, Strides::kAny);
LS_KERNEL(CPU, "ne.Tensor", comparison<NotEqual>, Strides::kAny);
LS_KERNEL(CPU, "lt.Tensor", comparison<Less>, Strides::kAny);
LS_KERNEL(CPU, "le.Tensor", comparison<LessEqual>, Strides::kAny);
LS_KERNEL(CPU, "gt.Tensor", comparison<Greater>, Strides::kAny);
LS_KERNEL(CPU, "ge.Tensor", comparison<GreaterEqual>, Strides::kAny);
LS_KERNEL(CPU, "eq.Scalar", number_comparison<Equal>, Strides::kAny);
LS_KERNEL(CPU, "ne.Scalar", number_comparison<NotEqual>, Strides::kAny);
LS_KERNEL(CPU, "lt.Scalar", number_comparison<Less>, Strides::kAny);
LS_KERNEL(CPU, "le.Scalar", number_comparison<LessEqual>, Strides::kAny);
LS_KERNEL(CPU, "gt.Scalar", number_comparison<Greater>, Strides::kAny);
LS_KERNEL(CPU, "ge.Scalar", number_comparison<GreaterEqual>, Strides::kAny);
LS_KERNEL(CPU, "logical_not", predicate<LogicalNot>, Strides::kAny);
LS_KERNEL(CPU, "isnan", predicate<IsNan>, Strides::kAny);
LS_KERNEL(CPU, "isfinite", predicate<IsFinite>, Strides::kAny);

}  // namespace

}  // namespace lockstep::cpu
