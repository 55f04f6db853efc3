#include "kernels/pointwise/activation.h"

#include "kernels/common/functors.h"
#include "kernels/common/row_halves.h"
#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

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
void swiglu(const Out& out, const In& gate, const In& up) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T, T>(out, Swiglu(), gate, up); });
}
void swiglu_backward(const Out& out, const In& grad, const In& gate, const In& up) {
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, T, T>(out, SwigluBackward(), grad, gate, up);
  });
}
void threshold_backward(const Out& out, const In& grad, const In& self, Scalar threshold) {
  with_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, T>(out, ThresholdBackward<T>{threshold.to<T>()}, grad, self);
  });
}

void swiglu_of_halves(const Out& out, const In& gate_up) {
  const RowHalves halves(gate_up);
  swiglu(halves.rows(out), halves.first(gate_up), halves.second(gate_up));
}
void swiglu_of_halves_backward(const Out& out, const In& grad, const In& gate_up) {
  const RowHalves halves(gate_up);
  const In rows = halves.rows(grad), gate = halves.first(gate_up);
  swiglu_backward(halves.first(out), rows, gate, halves.second(gate_up));
  swiglu(halves.second(out), gate, rows);
}

LS_POINTWISE_KERNEL("tanh", activation<Tanh>);
LS_POINTWISE_KERNEL("sigmoid", activation<Sigmoid>);
LS_POINTWISE_KERNEL("relu", relu);
LS_POINTWISE_KERNEL("gelu", gelu);
LS_POINTWISE_KERNEL("silu", activation<Silu>);
LS_POINTWISE_KERNEL("gelu_backward", gelu_backward);
LS_POINTWISE_KERNEL("silu_backward", backward<SiluBackward>);
LS_POINTWISE_KERNEL("swiglu", swiglu);
LS_POINTWISE_KERNEL("swiglu_backward", swiglu_backward);
LS_BACKEND_KERNEL("swiglu_of_halves", swiglu_of_halves, Strides::kContiguous);
LS_BACKEND_KERNEL("swiglu_of_halves_backward", swiglu_of_halves_backward, Strides::kContiguous);
LS_POINTWISE_KERNEL("threshold_backward", threshold_backward);
LS_POINTWISE_KERNEL("tanh_backward", backward<TanhBackward>);
LS_POINTWISE_KERNEL("sigmoid_backward", backward<SigmoidBackward>);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
