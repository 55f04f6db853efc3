#include "core/ops/sort/running_extremes.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/index/index.h"

namespace lockstep {

namespace rules {
namespace {

Outputs running_extreme(const Tensor& self, int64_t dim) {
  wrap_dim("cummax/cummin", dim, self.dim());
  Outputs outputs = one(self.sizes(), self.dtype());
  outputs.specs.push_back(one_of_indices(self.sizes()).specs[0]);
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

using ValuesAndIndices = std::tuple<Tensor, Tensor>;

/// Adds each gradient to the element that the running extreme was taken from.
Gradients give_to_taken(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] {
    return scatter_add(zeros(ctx.sizes(0), grad.options()), ctx.argument<int64_t>(1), ctx.saved(0),
                       grad);
  });
}

}  // namespace

LS_OP(cummax, ValuesAndIndices(const Tensor&, int64_t),
      "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)")
    .doc("The largest element up to each along a dimension, and its index.")
    .structured(rules::running_extreme)
    .batching(batching::along_dims)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative(give_to_taken);
ValuesAndIndices cummax(const Tensor& self, int64_t dim) { return op_cummax(self, dim); }
LS_OP(cummax_out, ValuesAndIndices(const Tensor&, int64_t, const Tensor&, const Tensor&),
      "cummax.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) -> "
      "(Tensor(a!) values, Tensor(b!) indices)")
    .doc("cummax, written into values and indices.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
      return write_results(op_cummax(self, dim), values, indices);
    });

LS_OP(cummin, ValuesAndIndices(const Tensor&, int64_t),
      "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)")
    .doc("The smallest element up to each along a dimension, and its index.")
    .structured(rules::running_extreme)
    .batching(batching::along_dims)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative(give_to_taken);
ValuesAndIndices cummin(const Tensor& self, int64_t dim) { return op_cummin(self, dim); }
LS_OP(cummin_out, ValuesAndIndices(const Tensor&, int64_t, const Tensor&, const Tensor&),
      "cummin.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) -> "
      "(Tensor(a!) values, Tensor(b!) indices)")
    .doc("cummin, written into values and indices.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
      return write_results(op_cummin(self, dim), values, indices);
    });

}  // namespace lockstep
