#include "core/ops/matmul.h"

#include "core/library.h"
#include "core/ops/matmul_rules.h"

namespace lockstep {

namespace {

/// a b, written where the gradient of the i-th argument must end: the communication arena under
/// DDP, fresh memory otherwise.
Tensor mm_into(VjpContext& ctx, size_t i, const Tensor& a, const Tensor& b) {
  const Tensor destination = ctx.destination(i);
  return destination.defined() ? mm_out(destination, a, b) : mm(a, b);
}

}  // namespace

LS_OP(mm, Tensor(const Tensor&, const Tensor&), "mm(Tensor self, Tensor mat2) -> Tensor")
    .doc("Matrix product of self [n, k] and mat2 [k, m].")
    .structured(rules::mm)
    .out()
    .autocast(Autocast::kLowerPrecision)
    .saves({"self for mat2", "mat2 for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(0);
      const Tensor& mat2 = ctx.saved(1);
      return ctx.gradients([&] { return mm_into(ctx, 0, grad, mat2.t()); },
                           [&] { return mm_into(ctx, 1, self.t(), grad); });
    });
Tensor mm(const Tensor& self, const Tensor& mat2) { return op_mm(self, mat2); }
const Tensor& mm_out(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  return op_mm.out(self, mat2, out);
}
Tensor Tensor::mm(const Tensor& mat2) const { return lockstep::mm(*this, mat2); }

}  // namespace lockstep
