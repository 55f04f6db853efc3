// The gated linear unit; declared in pointwise.h.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/shape.h"

namespace lockstep {

namespace {

struct Halves {
  Tensor value;
  Tensor gate;
};

Halves split_in_half(const Tensor& self, int64_t dim) {
  LS_CHECK(self.dim() > 0, ShapeError, "[glu] a 0-d tensor has no halves.");
  const int64_t d = wrap_dim("glu", dim, self.dim());
  const int64_t size = self.size(d);
  LS_CHECK(size % 2 == 0, ShapeError,
           "[glu] the halved dimension {} must have an even size, got shape {}.", d, self.shape());
  return {narrow(self, d, 0, size / 2), narrow(self, d, size / 2, size / 2)};
}

}  // namespace

LS_OP(glu, Tensor(const Tensor&, int64_t), "glu(Tensor self, int dim=-1) -> Tensor")
    .doc("The first half along a dimension times the sigmoid of the second.")
    .composite([](const Tensor& self, int64_t dim) {
      const Halves halves = split_in_half(self, dim);
      return halves.value * sigmoid(halves.gate);
    });
Tensor glu(const Tensor& self, int64_t dim) { return op_glu(self, dim); }

LS_OP(glu_out, const Tensor&(const Tensor&, int64_t, const Tensor&),
      "glu.out(Tensor self, int dim=-1, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("glu, written into out.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_glu(self, dim));
    });

LS_OP(glu_backward, Tensor(const Tensor&, const Tensor&, int64_t),
      "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor")
    .doc("Gradient of glu's argument.")
    .composite([](const Tensor& grad_output, const Tensor& self, int64_t dim) {
      const Halves halves = split_in_half(self, dim);
      const Tensor gate = sigmoid(halves.gate);
      return cat({grad_output * gate, grad_output * halves.value * gate * (1 - gate)}, dim);
    });

LS_OP(glu_backward_out, const Tensor&(const Tensor&, const Tensor&, int64_t, const Tensor&),
      "glu_backward.grad_input(Tensor grad_output, Tensor self, int dim, *, Tensor(a!) grad_input) "
      "-> Tensor(a!)")
    .doc("glu_backward, written into grad_input.")
    .composite([](const Tensor& grad_output, const Tensor& self, int64_t dim,
                  const Tensor& grad_input) -> const Tensor& {
      return clone_out(grad_input, op_glu_backward(grad_output, self, dim));
    });

}  // namespace lockstep
