#include "core/library.h"
#include "kernels/activation_functors.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/functors.h"

namespace lockstep::cpu {

namespace {

using namespace functors;

template <class F>
void activation(const Out& out, const In& self) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, F(), self); });
}
template <class F>
void backward(const Out& out, const In& grad, const In& saved) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T, T>(out, F(), grad, saved); });
}

void relu(const Out& out, const In& self) {
  with_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, Relu(), self); });
}
void gelu(const Out& out, const In& self, std::string_view approximate) {
  if (approximate == "tanh") return activation<GeluTanh>(out, self);
  if (out.dtype == DType::kBF16) return elementwise<float, float>(out, GeluBF16(), self);
  activation<Gelu>(out, self);
}
void gelu_backward(const Out& out, const In& grad, const In& self, std::string_view approximate) {
  approximate == "tanh" ? backward<GeluTanhBackward>(out, grad, self)
                        : backward<GeluBackward>(out, grad, self);
}
void threshold_backward(const Out& out, const In& grad, const In& self, Scalar threshold) {
  with_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, T>(out, ThresholdBackward<T>{threshold.to<T>()}, grad, self);
  });
}

LS_KERNEL(CPU, "tanh", activation<Tanh>, Strides::kAny);
LS_KERNEL(CPU, "sigmoid", activation<Sigmoid>, Strides::kAny);
LS_KERNEL(CPU, "relu", relu, Strides::kAny);
LS_KERNEL(CPU, "gelu", gelu, Strides::kAny);
LS_KERNEL(CPU, "silu", activation<Silu>, Strides::kAny);
LS_KERNEL(CPU, "gelu_backward", gelu_backward, Strides::kAny);
LS_KERNEL(CPU, "silu_backward", backward<SiluBackward>, Strides::kAny);
LS_KERNEL(CPU, "threshold_backward", threshold_backward, Strides::kAny);
LS_KERNEL(CPU, "tanh_backward", backward<TanhBackward>, Strides::kAny);
LS_KERNEL(CPU, "sigmoid_backward", backward<SigmoidBackward>, Strides::kAny);

}  // namespace

}  // namespace lockstep::cpu
