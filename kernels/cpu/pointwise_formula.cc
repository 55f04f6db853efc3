#include "core/library.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/pointwise_functors.h"

namespace lockstep::cpu {

namespace {

using namespace functors;

template <class F>
void binary(const Out& out, const In& self, const In& other) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T, T>(out, F(), self, other); });
}

void rsub_number(const Out& out, const In& self, Scalar other, Scalar alpha) {
  with_lane(out.dtype, [&]<class T>() {
    elementwise<T, T>(out, SubtractFrom<T>{other.to<T>(), alpha.to<T>()}, self);
  });
}
void addcmul(const Out& out, const In& self, const In& tensor1, const In& tensor2, Scalar value) {
  with_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, T, T>(out, AddProduct<T>{value.to<T>()}, self, tensor1, tensor2);
  });
}
void addcdiv(const Out& out, const In& self, const In& tensor1, const In& tensor2, Scalar value) {
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, T, T>(out, AddQuotient<T>{value.to<T>()}, self, tensor1, tensor2);
  });
}
void lerp(const Out& out, const In& self, const In& end, const In& weight) {
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, T, T>(out, Interpolate(), self, end, weight);
  });
}
void lerp_number(const Out& out, const In& self, const In& end, Scalar weight) {
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, T>(out, InterpolateAt<T>{weight.to<T>()}, self, end);
  });
}
void pow(const Out& out, const In& self, const In& exponent) {
  with_lane(out.dtype, [&]<class T>() { elementwise<T, T, T>(out, PowerOf(), self, exponent); });
}
void pow_of_number(const Out& out, Scalar self, const In& exponent) {
  with_lane(out.dtype,
            [&]<class T>() { elementwise<T, T>(out, PowerOfNumber<T>{self.to<T>()}, exponent); });
}

LS_KERNEL(CPU, "rsub.Scalar", rsub_number, Strides::kAny);
LS_KERNEL(CPU, "addcmul", addcmul, Strides::kAny);
LS_KERNEL(CPU, "addcdiv", addcdiv, Strides::kAny);
LS_KERNEL(CPU, "lerp.Tensor", lerp, Strides::kAny);
LS_KERNEL(CPU, "lerp.Scalar", lerp_number, Strides::kAny);
LS_KERNEL(CPU, "hypot", binary<Hypotenuse>, Strides::kAny);
LS_KERNEL(CPU, "atan2", binary<ArcTangent2>, Strides::kAny);
LS_KERNEL(CPU, "logaddexp", binary<LogAddExp>, Strides::kAny);
LS_KERNEL(CPU, "xlogy.Tensor", binary<XLogY>, Strides::kAny);
LS_KERNEL(CPU, "pow.Tensor_Tensor", pow, Strides::kAny);
LS_KERNEL(CPU, "pow.Scalar", pow_of_number, Strides::kAny);

}  // namespace

}  // namespace lockstep::cpu
