#include "core/ops/view/view_copies.h"

#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

LS_OP(ravel, Tensor(const Tensor&), "ravel(Tensor(a) self) -> Tensor(a)")
    .doc("All elements in row-major order: a view where one exists, else a copy.")
    .composite([](const Tensor& self) { return self.reshape({self.numel()}); });
Tensor ravel(const Tensor& self) { return op_ravel(self); }

LS_OP(narrow_copy, Tensor(const Tensor&, int64_t, int64_t, int64_t),
      "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor")
    .doc("A copy of self[start : start + length] along a dimension.")
    .composite([](const Tensor& self, int64_t dim, int64_t start, int64_t length) {
      return clone(narrow(self, dim, start, length), MemoryFormat::kContiguous);
    });
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return op_narrow_copy(self, dim, start, length);
}
LS_OP(narrow_copy_out, const Tensor&(const Tensor&, int64_t, int64_t, int64_t, const Tensor&),
      "narrow_copy.out(Tensor self, int dim, SymInt start, SymInt length, *, Tensor(a!) out) "
      "-> Tensor(a!)")
    .doc("narrow_copy, written into out.")
    .composite([](const Tensor& self, int64_t dim, int64_t start, int64_t length,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_narrow_copy(self, dim, start, length));
    });

LS_OP(unfold_copy, Tensor(const Tensor&, int64_t, int64_t, int64_t),
      "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor")
    .doc("A copy of the windows of `size` elements, `step` apart, along a dimension.")
    .composite([](const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
      return clone(unfold(self, dimension, size, step), MemoryFormat::kContiguous);
    });
Tensor unfold_copy(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return op_unfold_copy(self, dimension, size, step);
}
LS_OP(unfold_copy_out, const Tensor&(const Tensor&, int64_t, int64_t, int64_t, const Tensor&),
      "unfold_copy.out(Tensor self, int dimension, int size, int step, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("unfold_copy, written into out.")
    .composite([](const Tensor& self, int64_t dimension, int64_t size, int64_t step,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_unfold_copy(self, dimension, size, step));
    });

}  // namespace lockstep
