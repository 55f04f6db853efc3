#include "core/ops/sort/sort.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reduce/reduced_dims.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep {

namespace rules {
namespace {

/// Size of a dimension; 1 for a 0-d tensor.
int64_t size_at(const Tensor& tensor, int64_t dim) {
  return tensor.dim() == 0 ? 1 : tensor.sizes()[static_cast<size_t>(dim)];
}

Outputs values_and_indices(const Tensor& self, const Dims& sizes) {
  Outputs outputs = one(sizes, self.dtype());
  outputs.specs.push_back(one_of_indices(sizes).specs[0]);
  return outputs;
}

/// The shape of one element selected along `dim`.
Dims without(const Tensor& self, int64_t dim, bool keepdim) {
  Dims sizes = to_dims(self.sizes());
  if (self.dim() == 0) return sizes;
  if (keepdim) {
    sizes[static_cast<size_t>(dim)] = 1;
  } else {
    sizes.erase(static_cast<size_t>(dim));
  }
  return sizes;
}

/// Rule for selecting one element along `dim`. Throws IndexError if the dimension is empty.
Outputs one_along(std::string_view op, const Tensor& self, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(op, dim, self.dim());
  LS_CHECK(size_at(self, d) > 0, IndexError,
           "[{}] cannot choose from dimension {} of size 0: expected at least one element, got "
           "shape {}.",
           op, d, self.shape());
  return values_and_indices(self, without(self, d, keepdim));
}

void refuse_bool(std::string_view op, const Tensor& self) {
  LS_CHECK(self.dtype() != DType::kBool, DTypeError,
           "[{}] a bool tensor is not accepted: expected numbers, got {}. Cast it with to(dtype).",
           op, to_string(self));
}

Outputs sort(const Tensor& self, int64_t dim, bool) {
  wrap_dim("sort", dim, self.dim());
  Outputs outputs = values_and_indices(self, to_dims(self.sizes()));
  for (OutputSpec& spec : outputs.specs) keep_layout(spec, self);
  return outputs;
}
Outputs topk(const Tensor& self, int64_t k, int64_t dim, bool, bool) {
  refuse_bool("topk", self);
  const int64_t d = wrap_dim("topk", dim, self.dim());
  LS_CHECK(k >= 0 && k <= size_at(self, d), IndexError,
           "[topk] k is out of range: expected one in [0, {}] for dimension {} of shape {}, got "
           "{}.",
           size_at(self, d), d, self.shape(), k);
  Dims sizes = to_dims(self.sizes());
  if (!sizes.empty()) sizes[static_cast<size_t>(d)] = k;
  return values_and_indices(self, sizes);
}
Outputs kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  refuse_bool("kthvalue", self);
  const int64_t d = wrap_dim("kthvalue", dim, self.dim());
  LS_CHECK(k >= 1 && k <= size_at(self, d), IndexError,
           "[kthvalue] k is out of range: expected one in [1, {}] for dimension {} of shape {}, "
           "got {}.",
           size_at(self, d), d, self.shape(), k);
  return values_and_indices(self, without(self, d, keepdim));
}
Outputs median(const Tensor& self) {
  refuse_bool("median", self);
  return one({}, self.dtype());
}
Outputs median_dim(const Tensor& self, int64_t dim, bool keepdim) {
  refuse_bool("median", self);
  return one_along("median", self, dim, keepdim);
}
Outputs mode(const Tensor& self, int64_t dim, bool keepdim) {
  return one_along("mode", self, dim, keepdim);
}

}  // namespace
}  // namespace rules

namespace {

using ValuesAndIndices = std::tuple<Tensor, Tensor>;

/// Zeros of the input's shape with `grad` at the indices that the operator returned.
Tensor at_indices(VjpContext& ctx, const Tensor& grad, const Tensor& indices, int64_t dim) {
  return scatter_add(zeros(ctx.sizes(0), grad.options()), dim, indices, grad);
}

/// Gradient of kthvalue and median. Their results lack the dimension `dim` unless `keepdim`.
Gradients give_to_taken(VjpContext& ctx, const Tensor& grad, int64_t dim, bool keepdim) {
  return ctx.gradients([&] {
    return at_indices(ctx, with_reduced_dims(grad, ctx.sizes(0), {dim}, keepdim),
                      with_reduced_dims(ctx.saved(0), ctx.sizes(0), {dim}, keepdim), dim);
  });
}

/// The gradient of a median, shared among the elements equal to it.
Gradients share_among_equals(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] {
    const Tensor& self = ctx.saved(0);
    const Tensor& result = ctx.saved(1);
    const Tensor equal = where(isnan(result), isnan(self), eq(self, result)).to(grad.dtype());
    return equal * (grad / sum(equal));
  });
}

}  // namespace

LS_OP(sort, ValuesAndIndices(const Tensor&, int64_t, bool),
      "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
    .doc("The elements in order along a dimension, and their indices.")
    .structured(rules::sort)
    .batching(batching::along_dims)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return at_indices(ctx, grad, ctx.saved(0), ctx.argument<int64_t>(1)); });
    });
std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending) {
  return op_sort(self, dim, descending);
}

LS_OP(sort_out, ValuesAndIndices(const Tensor&, int64_t, bool, const Tensor&, const Tensor&),
      "sort.values(Tensor self, int dim=-1, bool descending=False, *, Tensor(a!) values, "
      "Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)")
    .doc("sort, written into values and indices.")
    .composite([](const Tensor& self, int64_t dim, bool descending, const Tensor& values,
                  const Tensor& indices) {
      return write_results(op_sort(self, dim, descending), values, indices);
    });

LS_OP(sort_stable, ValuesAndIndices(const Tensor&, std::optional<bool>, int64_t, bool),
      "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor "
      "values, Tensor indices)")
    .doc("sort, which is always stable.")
    .composite([](const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
      return op_sort(self, dim, descending);
    });

LS_OP(sort_stable_out,
      ValuesAndIndices(const Tensor&, std::optional<bool>, int64_t, bool, const Tensor&,
                       const Tensor&),
      "sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, "
      "Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)")
    .doc("sort, written into values and indices.")
    .composite([](const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending,
                  const Tensor& values, const Tensor& indices) {
      return write_results(op_sort_stable(self, stable, dim, descending), values, indices);
    });

LS_OP(argsort, Tensor(const Tensor&, int64_t, bool),
      "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor")
    .doc("Indices that sort a tensor along a dimension.")
    .composite([](const Tensor& self, int64_t dim, bool descending) {
      return std::get<1>(op_sort(self, dim, descending));
    });
Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return op_argsort(self, dim, descending);
}

LS_OP(argsort_stable, Tensor(const Tensor&, bool, int64_t, bool),
      "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor")
    .doc("argsort, which is always stable.")
    .composite([](const Tensor& self, bool, int64_t dim, bool descending) {
      return std::get<1>(op_sort(self, dim, descending));
    });

LS_OP(argsort_stable_out, const Tensor&(const Tensor&, bool, int64_t, bool, const Tensor&),
      "argsort.stable_out(Tensor self, *, bool stable, int dim=-1, bool descending=False, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("argsort, written into out.")
    .composite([](const Tensor& self, bool stable, int64_t dim, bool descending,
                  const Tensor& out) -> const Tensor& {
      return clone_indices_out("argsort", out, op_argsort_stable(self, stable, dim, descending));
    });

LS_OP(topk, ValuesAndIndices(const Tensor&, int64_t, int64_t, bool, bool),
      "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor "
      "values, Tensor indices)")
    .doc("The k largest or smallest elements along a dimension in order, and their indices.")
    .structured(rules::topk)
    .batching(batching::along_dims)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return at_indices(ctx, grad, ctx.saved(0), ctx.argument<int64_t>(2)); });
    });
std::tuple<Tensor, Tensor> topk(const Tensor& self, int64_t k, int64_t dim, bool largest,
                                bool sorted) {
  return op_topk(self, k, dim, largest, sorted);
}

LS_OP(topk_out,
      ValuesAndIndices(const Tensor&, int64_t, int64_t, bool, bool, const Tensor&, const Tensor&),
      "topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, "
      "Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)")
    .doc("topk, written into values and indices.")
    .composite([](const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted,
                  const Tensor& values, const Tensor& indices) {
      return write_results(op_topk(self, k, dim, largest, sorted), values, indices);
    });

LS_OP(kthvalue, ValuesAndIndices(const Tensor&, int64_t, int64_t, bool),
      "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor "
      "indices)")
    .doc("The k-th smallest element along a dimension, and its index.")
    .structured(rules::kthvalue)
    .batching(batching::along_dims)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return give_to_taken(ctx, grad, ctx.argument<int64_t>(2), ctx.argument<bool>(3));
    });
std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  return op_kthvalue(self, k, dim, keepdim);
}

LS_OP(kthvalue_out,
      ValuesAndIndices(const Tensor&, int64_t, int64_t, bool, const Tensor&, const Tensor&),
      "kthvalue.values(Tensor self, SymInt k, int dim=-1, bool keepdim=False, *, Tensor(a!) "
      "values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)")
    .doc("kthvalue, written into values and indices.")
    .composite([](const Tensor& self, int64_t k, int64_t dim, bool keepdim, const Tensor& values,
                  const Tensor& indices) {
      return write_results(op_kthvalue(self, k, dim, keepdim), values, indices);
    });

LS_OP(median, Tensor(const Tensor&), "median(Tensor self) -> Tensor")
    .doc("The middle element, the lower of two; NaN when there is one.")
    .structured(rules::median)
    .batching(batching::reduce_all)
    .out()
    .saves({"self", "output0"})
    .derivative(share_among_equals);
Tensor median(const Tensor& self) { return op_median(self); }

LS_OP(nanmedian, Tensor(const Tensor&), "nanmedian(Tensor self) -> Tensor")
    .doc("The middle of the elements that are not NaN.")
    .structured(rules::median)
    .batching(batching::reduce_all)
    .out()
    .saves({"self", "output0"})
    .derivative(share_among_equals);
Tensor nanmedian(const Tensor& self) { return op_nanmedian(self); }

LS_OP(median_dim, ValuesAndIndices(const Tensor&, int64_t, bool),
      "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .doc("The middle element along a dimension, and its index.")
    .structured(rules::median_dim)
    .batching(batching::reduction)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return give_to_taken(ctx, grad, ctx.argument<int64_t>(1), ctx.argument<bool>(2));
    });
std::tuple<Tensor, Tensor> median(const Tensor& self, int64_t dim, bool keepdim) {
  return op_median_dim(self, dim, keepdim);
}

LS_OP(median_dim_out, ValuesAndIndices(const Tensor&, int64_t, bool, const Tensor&, const Tensor&),
      "median.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, "
      "Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)")
    .doc("median, written into values and indices.")
    .composite([](const Tensor& self, int64_t dim, bool keepdim, const Tensor& values,
                  const Tensor& indices) {
      return write_results(op_median_dim(self, dim, keepdim), values, indices);
    });

LS_OP(nanmedian_dim, ValuesAndIndices(const Tensor&, int64_t, bool),
      "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .doc("The middle of the elements along a dimension that are not NaN, and its index.")
    .structured(rules::median_dim)
    .batching(batching::reduction)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return give_to_taken(ctx, grad, ctx.argument<int64_t>(1), ctx.argument<bool>(2));
    });
std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, int64_t dim, bool keepdim) {
  return op_nanmedian_dim(self, dim, keepdim);
}

LS_OP(nanmedian_dim_out,
      ValuesAndIndices(const Tensor&, int64_t, bool, const Tensor&, const Tensor&),
      "nanmedian.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, "
      "Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)")
    .doc("nanmedian, written into values and indices.")
    .composite([](const Tensor& self, int64_t dim, bool keepdim, const Tensor& values,
                  const Tensor& indices) {
      return write_results(op_nanmedian_dim(self, dim, keepdim), values, indices);
    });

LS_OP(mode, ValuesAndIndices(const Tensor&, int64_t, bool),
      "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .doc("The most frequent element along a dimension, the smallest of several, and its index.")
    .structured(rules::mode)
    .batching(batching::along_dims)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return give_to_taken(ctx, grad, ctx.argument<int64_t>(1), ctx.argument<bool>(2));
    });
std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim, bool keepdim) {
  return op_mode(self, dim, keepdim);
}

LS_OP(mode_out, ValuesAndIndices(const Tensor&, int64_t, bool, const Tensor&, const Tensor&),
      "mode.values(Tensor self, int dim=-1, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) "
      "indices) -> (Tensor(a!) values, Tensor(b!) indices)")
    .doc("mode, written into values and indices.")
    .composite([](const Tensor& self, int64_t dim, bool keepdim, const Tensor& values,
                  const Tensor& indices) {
      return write_results(op_mode(self, dim, keepdim), values, indices);
    });

}  // namespace lockstep
