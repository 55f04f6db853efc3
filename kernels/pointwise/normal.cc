#include "kernels/pointwise/normal.h"

#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using namespace functors;

template <class F>
void unary(const Out& out, const In& self) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, F(), self); });
}

LS_POINTWISE_KERNEL("special_erfcx", unary<ScaledErrorFunction>);
LS_POINTWISE_KERNEL("erfinv", unary<InverseErrorFunction>);
LS_POINTWISE_KERNEL("special_ndtr", unary<NormalCdf>);
LS_POINTWISE_KERNEL("special_log_ndtr", unary<LogNormalCdf>);
LS_POINTWISE_KERNEL("special_ndtri", unary<NormalQuantile>);
LS_POINTWISE_KERNEL("special_entr", unary<Entropy>);
LS_POINTWISE_KERNEL("sinc", unary<CardinalSine>);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
