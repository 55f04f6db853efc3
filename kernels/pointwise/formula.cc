#include "kernels/pointwise/formula.h"

#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

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

LS_POINTWISE_KERNEL("rsub.Scalar", rsub_number);
LS_POINTWISE_KERNEL("addcmul", addcmul);
LS_POINTWISE_KERNEL("addcdiv", addcdiv);
LS_POINTWISE_KERNEL("lerp.Tensor", lerp);
LS_POINTWISE_KERNEL("lerp.Scalar", lerp_number);
LS_POINTWISE_KERNEL("hypot", binary<Hypotenuse>);
LS_POINTWISE_KERNEL("atan2", binary<ArcTangent2>);
LS_POINTWISE_KERNEL("logaddexp", binary<LogAddExp>);
LS_POINTWISE_KERNEL("_binary_cross_entropy", binary<BinaryCrossEntropy>);
LS_POINTWISE_KERNEL("xlogy.Tensor", binary<XLogY>);
LS_POINTWISE_KERNEL("pow.Tensor_Tensor", pow);
LS_POINTWISE_KERNEL("pow.Scalar", pow_of_number);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
