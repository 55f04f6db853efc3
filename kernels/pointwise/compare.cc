#include "kernels/pointwise/compare.h"

#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using namespace functors;

template <class F>
void comparison(const Out& out, const In& self, const In& other) {
  with_lane(self.dtype, [&]<class T>() { elementwise<uint8_t, T, T>(out, F(), self, other); });
}
template <class F>
void number_comparison(const Out& out, const In& self, Scalar other) {
  with_lane(self.dtype, [&]<class T>() {
    elementwise<uint8_t, T, T>(out, F(), self, NumberOperand(other, self.dtype));
  });
}
template <class F>
void predicate(const Out& out, const In& self) {
  with_lane(self.dtype, [&]<class T>() { elementwise<uint8_t, T>(out, F(), self); });
}

LS_POINTWISE_KERNEL("eq.Tensor", comparison<Equal>);
LS_POINTWISE_KERNEL("ne.Tensor", comparison<NotEqual>);
LS_POINTWISE_KERNEL("lt.Tensor", comparison<Less>);
LS_POINTWISE_KERNEL("le.Tensor", comparison<LessEqual>);
LS_POINTWISE_KERNEL("gt.Tensor", comparison<Greater>);
LS_POINTWISE_KERNEL("ge.Tensor", comparison<GreaterEqual>);
LS_POINTWISE_KERNEL("eq.Scalar", number_comparison<Equal>);
LS_POINTWISE_KERNEL("ne.Scalar", number_comparison<NotEqual>);
LS_POINTWISE_KERNEL("lt.Scalar", number_comparison<Less>);
LS_POINTWISE_KERNEL("le.Scalar", number_comparison<LessEqual>);
LS_POINTWISE_KERNEL("gt.Scalar", number_comparison<Greater>);
LS_POINTWISE_KERNEL("ge.Scalar", number_comparison<GreaterEqual>);
LS_POINTWISE_KERNEL("logical_not", predicate<LogicalNot>);
LS_POINTWISE_KERNEL("isnan", predicate<IsNan>);
LS_POINTWISE_KERNEL("isfinite", predicate<IsFinite>);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
