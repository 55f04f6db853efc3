#include "core/library.h"
#include "kernels/activation_functors.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/strided_loop.h"

namespace lockstep::cpu {

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

LS_KERNEL(CPU, "elu", elu, Strides::kAny);
LS_KERNEL(CPU, "elu_backward", elu_backward, Strides::kAny);
LS_KERNEL(CPU, "leaky_relu", leaky_relu, Strides::kAny);
LS_KERNEL(CPU, "_prelu_kernel", prelu, Strides::kAny);
LS_KERNEL(CPU, "threshold", threshold, Strides::kAny);
LS_KERNEL(CPU, "hardshrink", hardshrink, Strides::kAny);
LS_KERNEL(CPU, "softshrink", softshrink, Strides::kAny);
LS_KERNEL(CPU, "hardsigmoid", activation<HardSigmoid>, Strides::kAny);
LS_KERNEL(CPU, "hardswish", activation<HardSwish>, Strides::kAny);
LS_KERNEL(CPU, "softplus", softplus, Strides::kAny);
LS_KERNEL(CPU, "log_sigmoid", activation<LogSigmoid>, Strides::kAny);
LS_KERNEL(CPU, "mish", activation<Mish>, Strides::kAny);
LS_KERNEL(CPU, "logit", logit, Strides::kAny);

}  // namespace

}  // namespace lockstep::cpu
