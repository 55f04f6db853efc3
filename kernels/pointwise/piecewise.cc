#include "kernels/pointwise/piecewise.h"

#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using namespace functors;

template <class F>
void activation(const Out& out, const In& self) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, F(), self); });
}

void elu(const Out& out, const In& self, Scalar alpha, Scalar scale, Scalar input_scale) {
  with_floating_lane(out.dtype, [&]<class T>() {
    const T factor = static_cast<T>(alpha.to_double() * scale.to_double());
    elementwise<T, T>(out, Elu<T>{factor, scale.to<T>(), input_scale.to<T>()}, self);
  });
}
void elu_backward(const Out& out, const In& grad, Scalar alpha, Scalar scale, Scalar input_scale,
                  bool is_result, const In& saved) {
  with_floating_lane(out.dtype, [&]<class T>() {
    const T factor = static_cast<T>(alpha.to_double() * scale.to_double());
    elementwise<T, T, T>(out, EluBackward<T>{factor, scale.to<T>(), input_scale.to<T>(), is_result},
                         grad, saved);
  });
}
void leaky_relu(const Out& out, const In& self, Scalar negative_slope) {
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T>(out, LeakyRelu<T>{negative_slope.to<T>()}, self);
  });
}
void prelu(const Out& out, const In& self, const In& weight) {
  with_floating_lane(out.dtype,
                     [&]<class T>() { elementwise<T, T, T>(out, PRelu(), self, weight); });
}
void threshold(const Out& out, const In& self, Scalar threshold, Scalar value) {
  with_lane(out.dtype, [&]<class T>() {
    elementwise<T, T>(out, Threshold<T>{threshold.to<T>(), value.to<T>()}, self);
  });
}
void hardshrink(const Out& out, const In& self, Scalar lambd) {
  with_floating_lane(
      out.dtype, [&]<class T>() { elementwise<T, T>(out, HardShrink<T>{lambd.to<T>()}, self); });
}
void softshrink(const Out& out, const In& self, Scalar lambd) {
  with_floating_lane(
      out.dtype, [&]<class T>() { elementwise<T, T>(out, SoftShrink<T>{lambd.to<T>()}, self); });
}
void softplus(const Out& out, const In& self, Scalar beta, Scalar threshold) {
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T>(out, Softplus<T>{beta.to<T>(), threshold.to<T>()}, self);
  });
}
void logit(const Out& out, const In& self, std::optional<double> eps) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  with_floating_lane(out.dtype, [&]<class T>() {
    const T low = static_cast<T>(eps.value_or(-kInfinity));
    const T high = eps ? T(1) - low : static_cast<T>(kInfinity);
    elementwise<T, T>(out, Logit<T>{low, high}, self);
  });
}

LS_POINTWISE_KERNEL("elu", elu);
LS_POINTWISE_KERNEL("elu_backward", elu_backward);
LS_POINTWISE_KERNEL("leaky_relu", leaky_relu);
LS_POINTWISE_KERNEL("_prelu_kernel", prelu);
LS_POINTWISE_KERNEL("threshold", threshold);
LS_POINTWISE_KERNEL("hardshrink", hardshrink);
LS_POINTWISE_KERNEL("softshrink", softshrink);
LS_POINTWISE_KERNEL("hardsigmoid", activation<HardSigmoid>);
LS_POINTWISE_KERNEL("hardswish", activation<HardSwish>);
LS_POINTWISE_KERNEL("softplus", softplus);
LS_POINTWISE_KERNEL("log_sigmoid", activation<LogSigmoid>);
LS_POINTWISE_KERNEL("mish", activation<Mish>);
LS_POINTWISE_KERNEL("logit", logit);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
