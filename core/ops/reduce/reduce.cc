#include "core/ops/reduce/reduce.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce_rules.h"
#include "core/ops/reduce/reduced_dims.h"
#include "core/ops/view/shape.h"

namespace lockstep {

namespace rules {
namespace {

Outputs mean_of(const Tensor& self, IntList dims, bool keepdim, std::optional<DType> dtype) {
  const DType result = dtype.value_or(self.dtype());
  LS_CHECK(is_floating(result), DTypeError,
           "[mean] the mean of integers is not an integer: expected a floating dtype, got {}. Give "
           "dtype or cast with to(dtype).",
           to_string(result));
  return computed(reduced_sizes("mean", self, dims, keepdim), result, self);
}

Outputs extreme(std::string_view op, const Tensor& self, IntList dims, bool keepdim) {
  check_not_empty(op, self, dims);
  return one(reduced_sizes(op, self, dims, keepdim), self.dtype());
}

Outputs extreme_index(std::string_view op, const Tensor& self, std::optional<int64_t> dim,
                      bool keepdim) {
  const Dims dims = dim ? Dims{*dim} : Dims{};
  check_not_empty(op, self, dims);
  return one_of_indices(reduced_sizes(op, self, dims, keepdim));
}

Outputs extreme_with_index(std::string_view op, const Tensor& self, int64_t dim, bool keepdim) {
  Outputs outputs = extreme(op, self, {dim}, keepdim);
  OutputSpec indices = outputs.specs[0];
  indices.dtype = DType::kI64;
  outputs.specs.push_back(std::move(indices));
  return outputs;
}

Outputs sum(const Tensor& self, std::optional<DType> dtype) {
  return total_of("sum", self, {}, false, dtype);
}
Outputs sum_dims(const Tensor& self, std::optional<IntList> dims, bool keepdim,
                 std::optional<DType> dtype) {
  return total_of("sum", self, dims.value_or(IntList()), keepdim, dtype);
}
Outputs mean(const Tensor& self, std::optional<DType> dtype) {
  return mean_of(self, {}, false, dtype);
}
Outputs mean_dims(const Tensor& self, std::optional<IntList> dims, bool keepdim,
                  std::optional<DType> dtype) {
  return mean_of(self, dims.value_or(IntList()), keepdim, dtype);
}
Outputs amax(const Tensor& self, IntList dims, bool keepdim) {
  return extreme("amax", self, dims, keepdim);
}
Outputs amin(const Tensor& self, IntList dims, bool keepdim) {
  return extreme("amin", self, dims, keepdim);
}
Outputs argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return extreme_index("argmax", self, dim, keepdim);
}
Outputs argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return extreme_index("argmin", self, dim, keepdim);
}
Outputs extreme_of_all(const Tensor& self) { return extreme("max/min", self, {}, false); }
Outputs max_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return extreme_with_index("max", self, dim, keepdim);
}
Outputs min_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return extreme_with_index("min", self, dim, keepdim);
}
Outputs cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return running("cumsum", self, dim, dtype);
}

}  // namespace
}  // namespace rules

namespace {

/// The gradient of a sum: `grad` expanded to every element that was added.
Tensor spread(VjpContext& ctx, const Tensor& grad, IntList dims, bool keepdim) {
  const Tensor spread = with_reduced_dims(grad, ctx.sizes(0), dims, keepdim).expand(ctx.sizes(0));
  return spread.dtype() == ctx.input(0).dtype ? spread : spread.to(ctx.input(0).dtype);
}

/// The gradient of amax and amin, shared among the elements equal to the result.
Gradients share_among_equals(VjpContext& ctx, const Tensor& grad, IntList dims, bool keepdim) {
  return ctx.gradients([&] {
    const Tensor& self = ctx.saved(0);
    const Tensor taken = eq(self, with_reduced_dims(ctx.saved(1), self.sizes(), dims, keepdim));
    const Tensor mask = taken.to(grad.dtype());
    const Tensor each =
        with_reduced_dims(grad, self.sizes(), dims, keepdim) / sum(mask, dims, true);
    return mask * each;
  });
}

/// The gradient of max and min, shared among the elements equal to the result.
Gradients share_among_extremes(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] {
    const Tensor& self = ctx.saved(0);
    const Tensor& result = ctx.saved(1);
    const Tensor equal = where(isnan(result), isnan(self), eq(self, result)).to(grad.dtype());
    return equal * (grad / sum(equal));
  });
}

/// The gradient of max and min along a dimension: goes entirely to the selected element.
Gradients give_to_taken(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] {
    const int64_t dim = ctx.argument<int64_t>(1);
    const bool keepdim = ctx.argument<bool>(2);
    const Tensor indices = with_reduced_dims(ctx.saved(0), ctx.sizes(0), {dim}, keepdim);
    const Tensor values = with_reduced_dims(grad, ctx.sizes(0), {dim}, keepdim);
    return scatter_add(zeros(ctx.sizes(0), grad.options()), dim, indices, values);
  });
}

IntList dims_argument(VjpContext& ctx) {
  return ctx.argument<std::optional<IntList>>(1).value_or(IntList());
}

}  // namespace

LS_OP(sum, Tensor(const Tensor&, std::optional<DType>),
      "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor")
    .doc("The sum of all elements.")
    .structured(rules::sum)
    .batching(batching::reduce_all)
    .out()
    .autocast(Autocast::kF32)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return spread(ctx, grad, {}, false); });
    });
Tensor sum(const Tensor& self) { return op_sum(self, std::nullopt); }

LS_OP(sum_dims, Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DType>),
      "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) "
      "-> Tensor")
    .doc("Sums over dimensions; an empty list means all.")
    .structured(rules::sum_dims)
    .batching(batching::reduction)
    .out("IntList_out")
    .autocast(Autocast::kF32)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return spread(ctx, grad, dims_argument(ctx), ctx.argument<bool>(2)); });
    });
Tensor sum(const Tensor& self, IntList dims, bool keepdim, std::optional<DType> dtype) {
  return op_sum_dims(self, dims, keepdim, dtype);
}

LS_OP(mean, Tensor(const Tensor&, std::optional<DType>),
      "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor")
    .doc("The mean of all elements; NaN for none.")
    .structured(rules::mean)
    .batching(batching::reduce_all)
    .out("dtype_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return spread(ctx, grad / reduced_count(ctx.sizes(0), {}), {}, false); });
    });
Tensor mean(const Tensor& self) { return op_mean(self, std::nullopt); }

LS_OP(mean_dims, Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DType>),
      "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
    .doc("The mean over dimensions; an empty list means all.")
    .structured(rules::mean_dims)
    .batching(batching::reduction)
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const IntList dims = dims_argument(ctx);
        return spread(ctx, grad / reduced_count(ctx.sizes(0), dims), dims, ctx.argument<bool>(2));
      });
    });
Tensor mean(const Tensor& self, IntList dims, bool keepdim, std::optional<DType> dtype) {
  return op_mean_dims(self, dims, keepdim, dtype);
}

LS_OP(sum_to_size, Tensor(const Tensor&, IntList),
      "sum_to_size(Tensor self, SymInt[] size) -> Tensor")
    .doc("Sums over the dimensions in which size was broadcast to self's shape.")
    .composite([](const Tensor& self, IntList size) {
      const int64_t lead = self.dim() - static_cast<int64_t>(size.size());
      bool fits = lead >= 0;
      Dims stretched;
      for (int64_t i = 0; fits && i < self.dim(); ++i) {
        const int64_t wanted = i < lead ? 1 : size[i - lead];
        fits = wanted == self.sizes()[i] || wanted == 1;
        if (i < lead || wanted != self.sizes()[i]) stretched.push_back(i);
      }
      LS_CHECK(fits, ShapeError, "[sum_to_size] shape {} was not stretched from {}.", self.shape(),
               to_string(size));
      if (stretched.empty()) return self;
      const Tensor result = self.sum(stretched, lead == 0);
      return lead == 0 ? result : result.reshape(size);
    });
Tensor sum_to_size(const Tensor& self, IntList sizes) { return op_sum_to_size(self, sizes); }

LS_OP(amax, Tensor(const Tensor&, IntList, bool),
      "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor")
    .doc("The largest element along dimensions; equal ones share the gradient.")
    .structured(rules::amax)
    .batching(batching::reduction)
    .out()
    .saves({"self", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return share_among_equals(ctx, grad, ctx.argument<IntList>(1), ctx.argument<bool>(2));
    });
Tensor amax(const Tensor& self, IntList dims, bool keepdim) { return op_amax(self, dims, keepdim); }

LS_OP(amin, Tensor(const Tensor&, IntList, bool),
      "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor")
    .doc("The smallest element along dimensions; equal ones share the gradient.")
    .structured(rules::amin)
    .batching(batching::reduction)
    .out()
    .saves({"self", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return share_among_equals(ctx, grad, ctx.argument<IntList>(1), ctx.argument<bool>(2));
    });
Tensor amin(const Tensor& self, IntList dims, bool keepdim) { return op_amin(self, dims, keepdim); }

LS_OP(max, Tensor(const Tensor&), "max(Tensor self) -> Tensor")
    .doc("The largest of all elements; equal ones share the gradient.")
    .structured(rules::extreme_of_all)
    .batching(batching::reduce_all)
    .out("unary_out")
    .saves({"self", "output0"})
    .derivative(share_among_extremes);
Tensor max(const Tensor& self) { return op_max(self); }

LS_OP(min, Tensor(const Tensor&), "min(Tensor self) -> Tensor")
    .doc("The smallest of all elements; equal ones share the gradient.")
    .structured(rules::extreme_of_all)
    .batching(batching::reduce_all)
    .out("unary_out")
    .saves({"self", "output0"})
    .derivative(share_among_extremes);
Tensor min(const Tensor& self) { return op_min(self); }

using ValuesAndIndices = std::tuple<Tensor, Tensor>;

LS_OP(max_dim, ValuesAndIndices(const Tensor&, int64_t, bool),
      "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .doc("The largest elements along a dimension and their indices.")
    .structured(rules::max_dim)
    .batching(batching::reduction)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative(give_to_taken);
std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim) {
  return op_max_dim(self, dim, keepdim);
}

LS_OP(max_dim_out, ValuesAndIndices(const Tensor&, int64_t, bool, const Tensor&, const Tensor&),
      "max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) "
      "max_values) -> (Tensor(a!) values, Tensor(b!) indices)")
    .doc("max, written into max and max_values.")
    .composite([](const Tensor& self, int64_t dim, bool keepdim, const Tensor& max,
                  const Tensor& max_values) {
      return write_results(op_max_dim(self, dim, keepdim), max, max_values);
    });

LS_OP(min_dim, ValuesAndIndices(const Tensor&, int64_t, bool),
      "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
    .doc("The smallest elements along a dimension and their indices.")
    .structured(rules::min_dim)
    .batching(batching::reduction)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative(give_to_taken);
std::tuple<Tensor, Tensor> min(const Tensor& self, int64_t dim, bool keepdim) {
  return op_min_dim(self, dim, keepdim);
}

LS_OP(min_dim_out, ValuesAndIndices(const Tensor&, int64_t, bool, const Tensor&, const Tensor&),
      "min.dim_min(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) min, Tensor(b!) "
      "min_indices) -> (Tensor(a!) values, Tensor(b!) indices)")
    .doc("min, written into min and min_indices.")
    .composite([](const Tensor& self, int64_t dim, bool keepdim, const Tensor& min,
                  const Tensor& min_indices) {
      return write_results(op_min_dim(self, dim, keepdim), min, min_indices);
    });

LS_OP(argmax, Tensor(const Tensor&, std::optional<int64_t>, bool),
      "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor")
    .doc("Index of the largest element, along a dimension or in the flattened tensor.")
    .structured(rules::argmax)
    .batching(batching::reduction)
    .out()
    .not_differentiable("an index is an integer");
Tensor argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return op_argmax(self, dim, keepdim);
}

LS_OP(argmin, Tensor(const Tensor&, std::optional<int64_t>, bool),
      "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor")
    .doc("Index of the smallest element, along a dimension or in the flattened tensor.")
    .structured(rules::argmin)
    .batching(batching::reduction)
    .out()
    .not_differentiable("an index is an integer");
Tensor argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return op_argmin(self, dim, keepdim);
}

LS_OP(cumsum, Tensor(const Tensor&, int64_t, std::optional<DType>),
      "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
    .doc("The running sum along a dimension.")
    .structured(rules::cumsum)
    .batching(batching::along_dims)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const int64_t dim = ctx.argument<int64_t>(1);
        const Tensor result = flip(cumsum(flip(grad, {dim}), dim), {dim});
        return result.dtype() == ctx.input(0).dtype ? result : result.to(ctx.input(0).dtype);
      });
    });
Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return op_cumsum(self, dim, dtype);
}

}  // namespace lockstep
