// The reductions to a truth and to a value on the host; declared in reduce.h.

#include "core/check.h"
#include "core/library.h"
#include "core/ops/reduce.h"
#include "core/ops/reduce_rules.h"

namespace lockstep {

LS_OP(any, Tensor(const Tensor&), "any(Tensor self) -> Tensor")
    .doc("Whether any element is non-zero.")
    .structured(rules::truth)
    .not_differentiable("a truth is not a number");
Tensor any(const Tensor& self) { return op_any(self); }

LS_OP(any_dim, Tensor(const Tensor&, int64_t, bool),
      "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
    .doc("Whether any element along a dimension is non-zero.")
    .structured(rules::truth_dim)
    .not_differentiable("a truth is not a number");
Tensor any(const Tensor& self, int64_t dim, bool keepdim) { return op_any_dim(self, dim, keepdim); }

LS_OP(any_dims, Tensor(const Tensor&, std::optional<IntList>, bool),
      "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
    .doc("Whether any element along dimensions is non-zero.")
    .structured(rules::truth_dims)
    .not_differentiable("a truth is not a number");

LS_OP(all, Tensor(const Tensor&), "all(Tensor self) -> Tensor")
    .doc("Whether every element is non-zero.")
    .structured(rules::truth)
    .not_differentiable("a truth is not a number");
Tensor all(const Tensor& self) { return op_all(self); }

LS_OP(all_dim, Tensor(const Tensor&, int64_t, bool),
      "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
    .doc("Whether every element along a dimension is non-zero.")
    .structured(rules::truth_dim)
    .not_differentiable("a truth is not a number");
Tensor all(const Tensor& self, int64_t dim, bool keepdim) { return op_all_dim(self, dim, keepdim); }

LS_OP(all_dims, Tensor(const Tensor&, std::optional<IntList>, bool),
      "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
    .doc("Whether every element along dimensions is non-zero.")
    .structured(rules::truth_dims)
    .not_differentiable("a truth is not a number");

LS_OP(equal, bool(const Tensor&, const Tensor&), "equal(Tensor self, Tensor other) -> bool")
    .doc("Whether both have the same shape and elements; NaN equals nothing.")
    .host_value()
    .not_differentiable("a truth is not a number");
bool equal(const Tensor& self, const Tensor& other) { return op_equal(self, other); }

LS_OP(local_scalar_dense, Scalar(const Tensor&), "_local_scalar_dense(Tensor self) -> Scalar")
    .doc("The only element as a number on the host.")
    .host_value()
    .not_differentiable("a number on the host is outside the graph");

LS_OP(item, Scalar(const Tensor&), "item(Tensor self) -> Scalar")
    .doc("The only element as a number on the host.")
    .composite([](const Tensor& self) { return op_local_scalar_dense(self); });
Scalar Tensor::item_scalar() const { return op_item(*this); }

LS_OP(is_nonzero, bool(const Tensor&), "is_nonzero(Tensor self) -> bool")
    .doc("Whether the only element is non-zero.")
    .composite([](const Tensor& self) {
      LS_CHECK(
          self.numel() == 1, ShapeError,
          "[is_nonzero] only a tensor of one element is true or false: expected 1 element, got "
          "{} (shape {}). Use any or all.",
          self.numel(), self.shape());
      return self.item_scalar().to_bool();
    });
bool is_nonzero(const Tensor& self) { return op_is_nonzero(self); }

}  // namespace lockstep
