#include "core/ops/pointwise/swiglu_of_halves.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/pointwise/activation_curvature.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
namespace {

/// Sizes of the halves of [..., 2 n].
Dims half_sizes(std::string_view op, const Tensor& gate_up) {
  LS_CHECK(is_floating(gate_up.dtype()), DTypeError, "[{}] expected a floating tensor, got {}.", op,
           to_string(gate_up.dtype()));
  LS_CHECK(gate_up.dim() > 0 && gate_up.size(-1) % 2 == 0, ShapeError,
           "[{}] expected a last dimension of even size, got shape {}.", op, gate_up.shape());
  Dims sizes = to_dims(gate_up.sizes());
  sizes.back() /= 2;
  return sizes;
}

Outputs swiglu_of_halves(const Tensor& gate_up) {
  return one(half_sizes("swiglu_of_halves", gate_up), gate_up.dtype());
}

Outputs swiglu_of_halves_backward(const Tensor& grad_output, const Tensor& gate_up) {
  constexpr std::string_view kName = "swiglu_of_halves_backward";
  const Dims sizes = half_sizes(kName, gate_up);
  LS_CHECK(same(grad_output.sizes(), sizes) && grad_output.dtype() == gate_up.dtype(), ShapeError,
           "[{}] expected a gradient {} {}, got {} {}.", kName, to_string(gate_up.dtype()),
           to_string(sizes), to_string(grad_output.dtype()), grad_output.shape());
  return one(to_dims(gate_up.sizes()), gate_up.dtype());
}

}  // namespace
}  // namespace rules

namespace {

struct GateUp {
  explicit GateUp(const Tensor& joint)
      : gate(joint.slice(-1, 0, joint.size(-1) / 2)), up(joint.slice(-1, joint.size(-1) / 2)) {}
  Tensor gate;
  Tensor up;
};

/// Rows lie one behind the other, with or without a batch in front.
void in_front(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  for (size_t i = 0; i < call.count(); ++i) call.set_front(i);
  call.forward();
}

}  // namespace

LS_OP(swiglu_of_halves, Tensor(const Tensor&), "swiglu_of_halves(Tensor gate_up) -> Tensor")
    .doc("silu of the first half of the last dimension times the second half.")
    .structured(rules::swiglu_of_halves)
    .batching(in_front)
    .saves({"gate_up"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return swiglu_of_halves_backward(grad, ctx.saved(0)); });
    });
Tensor swiglu_of_halves(const Tensor& gate_up) { return op_swiglu_of_halves(gate_up); }

LS_OP(swiglu_of_halves_backward, Tensor(const Tensor&, const Tensor&),
      "swiglu_of_halves_backward(Tensor grad_output, Tensor gate_up) -> Tensor")
    .doc("Gradient of swiglu_of_halves' argument.")
    .structured(rules::swiglu_of_halves_backward)
    .batching(in_front)
    .saves({"grad_output for gate_up", "gate_up"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const GateUp at(ctx.saved(1)), along(grad);
      return ctx.gradients(
          [&] { return swiglu_backward(along.gate, at.gate, at.up) + swiglu(at.gate, along.up); },
          [&] {
            const Tensor& g = ctx.saved(0);
            const Tensor bend = along.gate * g * at.up * silu_curvature(at.gate);
            return cat({bend + swiglu_backward(along.up, at.gate, g),
                        swiglu_backward(along.gate, at.gate, g)},
                       -1);
          });
    });
Tensor swiglu_of_halves_backward(const Tensor& grad_output, const Tensor& gate_up) {
  return op_swiglu_of_halves_backward(grad_output, gate_up);
}

}  // namespace lockstep
