#include "kernels/pointwise/special.h"

#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using namespace functors;

template <class F>
void unary(const Out& out, const In& self) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, F(), self); });
}
void polygamma_kernel(const Out& out, int64_t n, const In& self) {
  if (n == 0) return unary<Digamma>(out, self);
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, Polygamma{n}, self); });
}

LS_POINTWISE_KERNEL("exp2", unary<ExpTwo>);
LS_POINTWISE_KERNEL("expm1", unary<ExpMinusOne>);
LS_POINTWISE_KERNEL("log1p", unary<LogOnePlus>);
LS_POINTWISE_KERNEL("log2", unary<LogTwo>);
LS_POINTWISE_KERNEL("log10", unary<LogTen>);
LS_POINTWISE_KERNEL("tan", unary<Tangent>);
LS_POINTWISE_KERNEL("asin", unary<ArcSine>);
LS_POINTWISE_KERNEL("acos", unary<ArcCosine>);
LS_POINTWISE_KERNEL("atan", unary<ArcTangent>);
LS_POINTWISE_KERNEL("sinh", unary<HyperbolicSine>);
LS_POINTWISE_KERNEL("cosh", unary<HyperbolicCosine>);
LS_POINTWISE_KERNEL("asinh", unary<AreaSine>);
LS_POINTWISE_KERNEL("acosh", unary<AreaCosine>);
LS_POINTWISE_KERNEL("atanh", unary<AreaTangent>);
LS_POINTWISE_KERNEL("erf", unary<ErrorFunction>);
LS_POINTWISE_KERNEL("erfc", unary<ComplementaryError>);
LS_POINTWISE_KERNEL("lgamma", unary<LogGamma>);
LS_POINTWISE_KERNEL("digamma", unary<Digamma>);
LS_POINTWISE_KERNEL("polygamma", polygamma_kernel);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
