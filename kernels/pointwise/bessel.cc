#include "kernels/pointwise/bessel.h"

#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using namespace functors;

template <class F>
void unary(const Out& out, const In& self) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, F(), self); });
}

LS_POINTWISE_KERNEL("i0", unary<ModifiedBessel0>);
LS_POINTWISE_KERNEL("special_i0e", unary<ScaledModifiedBessel0>);
LS_POINTWISE_KERNEL("special_i1", unary<ModifiedBessel1>);
LS_POINTWISE_KERNEL("special_i1e", unary<ScaledModifiedBessel1>);
LS_POINTWISE_KERNEL("special_bessel_j0", unary<Bessel0>);
LS_POINTWISE_KERNEL("special_bessel_j1", unary<Bessel1>);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
