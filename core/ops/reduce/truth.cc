// Reductions to a bool, to a count and to a value on the host; declared in reduce.h.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reduce/reduce_rules.h"

namespace lockstep {

namespace rules {
namespace {

DType truth_dtype(const Tensor& self) {
  return self.dtype() == DType::kU8 ? DType::kU8 : DType::kBool;
}

Outputs truth(const Tensor& self) { return one({}, truth_dtype(self)); }
Outputs truth_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return one(reduced_sizes("any/all", self, {dim}, keepdim), truth_dtype(self));
}
Outputs truth_dims(const Tensor& self, std::optional<IntList> dims, bool keepdim) {
  if (dims && dims->empty()) return one(to_dims(self.sizes()), truth_dtype(self));
  return one(reduced_sizes("any/all", self, dims.value_or(IntList()), keepdim), truth_dtype(self));
}

}  // namespace
}  // namespace rules

LS_OP(any, Tensor(const Tensor&), "any(Tensor self) -> Tensor")
    .doc("Whether any element is non-zero.")
    .structured(rules::truth)
    .batching(batching::reduce_all)
    .out("all_out")
    .not_differentiable("a truth is not a number");
Tensor any(const Tensor& self) { return op_any(self); }

LS_OP(any_dim, Tensor(const Tensor&, int64_t, bool),
      "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
    .doc("Whether any element along a dimension is non-zero.")
    .structured(rules::truth_dim)
    .batching(batching::reduction)
    .out()
    .not_differentiable("a truth is not a number");
Tensor any(const Tensor& self, int64_t dim, bool keepdim) { return op_any_dim(self, dim, keepdim); }

LS_OP(any_dims, Tensor(const Tensor&, std::optional<IntList>, bool),
      "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
    .doc("Whether any element along dimensions is non-zero; an empty list means none of them.")
    .structured(rules::truth_dims)
    .batching(batching::reduction)
    .out("dims_out")
    .not_differentiable("a truth is not a number");

LS_OP(all, Tensor(const Tensor&), "all(Tensor self) -> Tensor")
    .doc("Whether every element is non-zero.")
    .structured(rules::truth)
    .batching(batching::reduce_all)
    .out("all_out")
    .not_differentiable("a truth is not a number");
Tensor all(const Tensor& self) { return op_all(self); }

LS_OP(all_dim, Tensor(const Tensor&, int64_t, bool),
      "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
    .doc("Whether every element along a dimension is non-zero.")
    .structured(rules::truth_dim)
    .batching(batching::reduction)
    .out()
    .not_differentiable("a truth is not a number");
Tensor all(const Tensor& self, int64_t dim, bool keepdim) { return op_all_dim(self, dim, keepdim); }

LS_OP(all_dims, Tensor(const Tensor&, std::optional<IntList>, bool),
      "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
    .doc("Whether every element along dimensions is non-zero; an empty list means none of them.")
    .structured(rules::truth_dims)
    .batching(batching::reduction)
    .out("dims_out")
    .not_differentiable("a truth is not a number");

LS_OP(count_nonzero, Tensor(const Tensor&, std::optional<int64_t>),
      "count_nonzero(Tensor self, int? dim=None) -> Tensor")
    .doc("The number of non-zero elements, of all or along a dimension.")
    .composite([](const Tensor& self, std::optional<int64_t> dim) {
      return dim ? sum(ne(self, 0), {*dim}) : sum(ne(self, 0));
    });

LS_OP(count_nonzero_out, const Tensor&(const Tensor&, std::optional<int64_t>, const Tensor&),
      "count_nonzero.out(Tensor self, int? dim=None, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("count_nonzero, written into out.")
    .composite([](const Tensor& self, std::optional<int64_t> dim,
                  const Tensor& out) -> const Tensor& {
      return clone_indices_out("count_nonzero", out, op_count_nonzero(self, dim));
    });

LS_OP(count_nonzero_dims, Tensor(const Tensor&, IntList),
      "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor")
    .doc("The number of non-zero elements over dimensions; an empty list means all.")
    .composite([](const Tensor& self, IntList dims) { return sum(ne(self, 0), dims); });
Tensor count_nonzero(const Tensor& self, IntList dims) { return op_count_nonzero_dims(self, dims); }

LS_OP(count_nonzero_dims_out, const Tensor&(const Tensor&, IntList, const Tensor&),
      "count_nonzero.dim_IntList_out(Tensor self, int[] dim, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("count_nonzero, written into out.")
    .composite([](const Tensor& self, IntList dim, const Tensor& out) -> const Tensor& {
      return clone_indices_out("count_nonzero", out, op_count_nonzero_dims(self, dim));
    });

LS_OP(equal, bool(const Tensor&, const Tensor&), "equal(Tensor self, Tensor other) -> bool")
    .doc(
        "Whether both have the same shape and elements, in the dtype that both promote to; NaN "
        "equals nothing.")
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
