#include "core/ops/index/scatter.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/image/pad.h"
#include "core/ops/index/batching_indexing.h"
#include "core/ops/index/index.h"
#include "core/ops/index/index_checks.h"
#include "core/ops/index/scatter_rules.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_division.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/kept_layout.h"
#include "core/ops/view/view.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace rules {

namespace {

Outputs like_self(const Tensor& self) { return one(to_dims(self.sizes()), self.dtype()); }

void check_scatter(std::string_view op, const Tensor& self, int64_t dim, const Tensor& index,
                   const Tensor& src) {
  check_places(op, index);
  check_same_dtype(op, self, src);
  check_covers(op, "self", self, index, wrap_dim(op, dim, self.dim()));
  check_covers(op, "src", src, index, -1);
}

void check_vector(std::string_view op, const Tensor& index) {
  LS_CHECK(index.dtype() == DType::kI64, DTypeError,
           "[{}] an index must be int64, got {}. Cast it with to(DType::kI64).", op,
           to_string(index.dtype()));
  LS_CHECK(index.dim() <= 1, ShapeError,
           "[{}] the index must have one dimension, got shape {}. Use flatten().", op,
           index.shape());
}

}  // namespace

ScatterReduction scatter_reduction(std::string_view reduce) {
  constexpr std::pair<std::string_view, ScatterReduction> kNames[] = {
      {"sum", ScatterReduction::kSum},   {"prod", ScatterReduction::kProd},
      {"mean", ScatterReduction::kMean}, {"amax", ScatterReduction::kAmax},
      {"amin", ScatterReduction::kAmin}, {"max", ScatterReduction::kAmax},
      {"min", ScatterReduction::kAmin}};
  for (const auto& [name, reduction] : kNames) {
    if (name == reduce) return reduction;
  }
  throw Error(fmt::format(
      "[scatter_reduce] expected reduce to be sum, prod, mean, amax or amin, got \"{}\".", reduce));
}

Outputs scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter("scatter", self, dim, index, src);
  return like_self(self);
}

Outputs scatter_value(const Tensor& self, int64_t dim, const Tensor& index, Scalar value) {
  check_holds("scatter", "value", self.dtype(), value);
  check_places("scatter", index);
  check_covers("scatter", "self", self, index, wrap_dim("scatter", dim, self.dim()));
  return like_self(self);
}

Outputs scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                       std::string_view reduce, bool) {
  check_scatter("scatter_reduce", self, dim, index, src);
  const bool mean = scatter_reduction(reduce) == ScatterReduction::kMean;
  LS_CHECK(!mean || self.dtype() != DType::kBool, DTypeError,
           "[scatter_reduce] bools have no mean. Cast them with to(dtype).");
  return like_self(self);
}

Outputs index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check_vector("index_copy", index);
  check_same_dtype("index_copy", self, source);
  const int64_t d = wrap_dim("index_copy", dim, self.dim());
  Dims wanted = to_dims(self.sizes());
  if (self.dim() > 0) wanted[d] = index.numel();
  const bool one_each = self.dim() <= 1 && source.dim() == 0 && index.numel() == 1;
  const bool vector_of_one =
      self.dim() == 0 && source.dim() == 1 && source.numel() == 1 && index.numel() == 1;
  LS_CHECK(one_each || vector_of_one || (self.dim() > 0 && same(source.sizes(), wanted)),
           ShapeError, "[index_copy] the source does not fit: expected shape {}, got {}.",
           to_string(wanted), source.shape());
  return like_self(self);
}

Outputs index_fill(const Tensor& self, int64_t dim, const Tensor& index, Scalar value) {
  check_holds("index_fill", "value", self.dtype(), value);
  check_vector("index_fill", index);
  wrap_dim("index_fill", dim, self.dim());
  Outputs outputs = like_self(self);
  keep_layout(outputs.specs[0], self);
  return outputs;
}

}  // namespace rules

namespace {

/// The part of src that an index of these sizes covers.
Tensor covered(const Tensor& src, IntList sizes) {
  Tensor part = src;
  for (size_t d = 0; d < sizes.size() && src.dim() > 0; ++d) {
    const int64_t dim = static_cast<int64_t>(d);
    if (part.sizes()[d] != sizes[d]) part = part.slice(dim, 0, sizes[d]);
  }
  return part.dim() == static_cast<int64_t>(sizes.size()) ? part : part.reshape(sizes);
}

/// Converts scatter's name of a reduction to scatter_reduce's.
std::string_view reduction_of(std::string_view reduce) {
  LS_CHECK(reduce == "add" || reduce == "multiply", Error,
           "[scatter] expected reduce to be add or multiply, got \"{}\".", reduce);
  return reduce == "add" ? "sum" : "prod";
}

Tensor as_dtype_of(const Tensor& flags, const Tensor& like) { return flags.to(like.dtype()); }

/// Gradients of self and of the part of src that is used.
struct Pair {
  Tensor self;
  Tensor src;
};

/// Gradients of a product: each factor gets the product of the others, computed without dividing by
/// zero as the product of the non-zero factors times the other factors that are zero. With two or
/// more of the latter the first and second derivative are 0, so their sum can replace the product.
Pair product_gradients(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& src, bool include_self) {
  const Tensor self_zero = eq(self, 0);
  const Tensor src_zero = eq(src, 0);
  const Tensor self_zeros = masked_fill(self, logical_not(self_zero), 0);
  const Tensor src_zeros = masked_fill(src, logical_not(src_zero), 0);
  const Tensor nothing = zeros_like(self, {self.dtype(), self.device()});
  const Tensor own_count = include_self ? as_dtype_of(self_zero, self) : nothing;
  const Tensor own_sum = include_self ? self_zeros : nothing;
  const Tensor zero_count = scatter_add(own_count, dim, index, as_dtype_of(src_zero, src));
  const Tensor zero_sum = scatter_add(own_sum, dim, index, src_zeros);
  const Tensor weighted =
      grad * scatter_reduce(masked_fill(self, self_zero, 1), dim, index,
                            masked_fill(src, src_zero, 1), "prod", include_self);
  const auto share = [](const Tensor& product, const Tensor& count, const Tensor& sum,
                        const Tensor& zero, const Tensor& own_zero, const Tensor& factor) {
    const Tensor others = count - as_dtype_of(zero, count);
    const Tensor rest =
        masked_fill(sum - own_zero, ne(others, 1), 0) + as_dtype_of(eq(others, 0), sum);
    return product * rest / masked_fill(factor, zero, 1);
  };
  const auto at_index = [&](const Tensor& tensor) { return gather(tensor, dim, index); };
  return {share(weighted, zero_count, zero_sum, self_zero, self_zeros, self),
          share(at_index(weighted), at_index(zero_count), at_index(zero_sum), src_zero, src_zeros,
                src)};
}

Pair extremum_gradients(const Tensor& grad, const Tensor& result, const Tensor& self, int64_t dim,
                        const Tensor& index, const Tensor& src) {
  const Tensor self_chosen = as_dtype_of(eq(self, result), self);
  const Tensor src_chosen = as_dtype_of(eq(src, gather(result, dim, index)), src);
  const Tensor share = grad / scatter_add(self_chosen, dim, index, src_chosen);
  return {self_chosen * share, src_chosen * gather(share, dim, index)};
}

}  // namespace

LS_OP(scatter, Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&),
      "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
    .doc("A copy of self with each element of src written at its index along a dimension.")
    .structured(rules::scatter)
    .batching(batching::gather)
    .in_place()
    .out("src_out")
    .saves({"index"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const auto dim = ctx.argument<int64_t>(1);
      const Tensor& index = ctx.saved(0);
      return ctx.gradients([&] { return scatter(grad, dim, index, Scalar(0)); },
                           [] { return Tensor(); },
                           [&] { return zero_extend(gather(grad, dim, index), ctx.sizes(2)); });
    });
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return op_scatter(self, dim, index, src);
}

LS_OP(scatter_value, Tensor(const Tensor&, int64_t, const Tensor&, Scalar),
      "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
    .doc("A copy of self with a number written at each index along a dimension.")
    .structured(rules::scatter_value)
    .batching(batching::gather)
    .in_place()
    .out("value_out")
    .saves({"index"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return scatter(grad, ctx.argument<int64_t>(1), ctx.saved(0), Scalar(0)); },
          [] { return Tensor(); });
    });
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return op_scatter_value(self, dim, index, value);
}

LS_OP(scatter_reduce,
      Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool),
      "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
      "include_self=True) -> Tensor")
    .doc(
        "A copy of self with the elements of src reduced into it at their index along a dimension.")
    .structured(rules::scatter_reduce)
    .batching(batching::gather)
    .in_place()
    .out("two_out")
    .saves({"self", "index", "src", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const auto dim = ctx.argument<int64_t>(1);
      const Tensor& self = ctx.saved(0);
      const Tensor& index = ctx.saved(1);
      const Tensor& result = ctx.saved(3);
      const bool include_self = ctx.argument<bool>(5);
      if (index.numel() == 0) {
        return ctx.gradients([&] { return grad; }, [] { return Tensor(); },
                             [&] { return zeros(ctx.sizes(2), grad.options()); });
      }
      const Tensor src = covered(ctx.saved(2), index.sizes());
      Pair pair;
      switch (rules::scatter_reduction(ctx.argument<std::string_view>(4))) {
        case ScatterReduction::kSum:
          pair = {grad, gather(grad, dim, index)};
          break;
        case ScatterReduction::kProd:
          pair = product_gradients(grad, self, dim, index, src, include_self);
          break;
        case ScatterReduction::kMean: {
          const Tensor own = full(ctx.sizes(0), include_self ? 1 : 0, grad.options());
          const Tensor count = scatter_add(own, dim, index, ones(index.sizes(), grad.options()));
          const Tensor share = grad / masked_fill(count, eq(count, 0), 1);
          pair = {share, gather(share, dim, index)};
          break;
        }
        case ScatterReduction::kAmax:
        case ScatterReduction::kAmin: {
          // Without include_self the old element must not compare equal to the extremum.
          const Tensor counted = include_self ? self : scatter(self, dim, index, Scalar(NAN));
          pair = extremum_gradients(grad, result, counted, dim, index, src);
          break;
        }
      }
      return ctx.gradients(
          [&] { return include_self ? pair.self : scatter(grad, dim, index, Scalar(0)); },
          [] { return Tensor(); }, [&] { return zero_extend(pair.src, ctx.sizes(2)); });
    });
Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, bool include_self) {
  return op_scatter_reduce(self, dim, index, src, reduce, include_self);
}

LS_OP(scatter_reduce_src,
      Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view),
      "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor")
    .doc("scatter_reduce with reduce \"add\" or \"multiply\".")
    .composite([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                  std::string_view reduce) {
      return scatter_reduce(self, dim, index, src, reduction_of(reduce));
    });

LS_OP(scatter_reduce_src_,
      const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view),
      "scatter_.reduce(Tensor(a!) self, int dim, Tensor index, Tensor src, *, str reduce) -> "
      "Tensor(a!)")
    .doc("scatter.reduce in place.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                  std::string_view reduce) -> const Tensor& {
      return op_scatter_reduce.in_place(self, dim, index, src, reduction_of(reduce), true);
    });

LS_OP(scatter_reduce_src_out,
      const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view,
                    const Tensor&),
      "scatter.reduce_out(Tensor self, int dim, Tensor index, Tensor src, *, str reduce, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("scatter.reduce, written into out.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                  std::string_view reduce, const Tensor& out) -> const Tensor& {
      return op_scatter_reduce.out(self, dim, index, src, reduction_of(reduce), true, out);
    });

LS_OP(scatter_reduce_value, Tensor(const Tensor&, int64_t, const Tensor&, Scalar, std::string_view),
      "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> "
      "Tensor")
    .doc("scatter_reduce of one number with reduce \"add\" or \"multiply\".")
    .composite([](const Tensor& self, int64_t dim, const Tensor& index, Scalar value,
                  std::string_view reduce) {
      return op_scatter_reduce_src(self, dim, index, full(index.sizes(), value, self.options()),
                                   reduce);
    });

LS_OP(scatter_reduce_value_,
      const Tensor&(const Tensor&, int64_t, const Tensor&, Scalar, std::string_view),
      "scatter_.value_reduce(Tensor(a!) self, int dim, Tensor index, Scalar value, *, str reduce) "
      "-> Tensor(a!)")
    .doc("scatter.value_reduce in place.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& index, Scalar value,
                  std::string_view reduce) -> const Tensor& {
      return op_scatter_reduce_src_(self, dim, index, full(index.sizes(), value, self.options()),
                                    reduce);
    });

LS_OP(scatter_reduce_value_out,
      const Tensor&(const Tensor&, int64_t, const Tensor&, Scalar, std::string_view, const Tensor&),
      "scatter.value_reduce_out(Tensor self, int dim, Tensor index, Scalar value, *, str reduce, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("scatter.value_reduce, written into out.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& index, Scalar value,
                  std::string_view reduce, const Tensor& out) -> const Tensor& {
      return op_scatter_reduce_src_out(self, dim, index, full(index.sizes(), value, self.options()),
                                       reduce, out);
    });

LS_OP(index_copy, Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&),
      "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor")
    .doc("A copy of self with the slices of source written at index along a dimension.")
    .structured(rules::index_copy)
    .batching(batching::index_write)
    .in_place()
    .out()
    .autocast(Autocast::kPromote)
    .saves({"index"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const auto dim = ctx.argument<int64_t>(1);
      return ctx.gradients(
          [&] { return index_fill(grad, dim, ctx.saved(0), Scalar(0)); }, [] { return Tensor(); },
          [&] { return index_select(grad, dim, ctx.saved(0)).reshape(ctx.sizes(2)); });
    });
Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  return op_index_copy(self, dim, index, source);
}

LS_OP(index_fill, Tensor(const Tensor&, int64_t, const Tensor&, Scalar),
      "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
    .doc("A copy of self with the slices at index along a dimension filled with a number.")
    .structured(rules::index_fill)
    .batching(batching::index_write)
    .in_place()
    .out("int_Scalar_out")
    .saves({"index"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return index_fill(grad, ctx.argument<int64_t>(1), ctx.saved(0), Scalar(0)); },
          [] { return Tensor(); });
    });
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return op_index_fill(self, dim, index, value);
}

LS_OP(index_fill_tensor, Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&),
      "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor")
    .doc("index_fill with a 0-d tensor, which gets a gradient too.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
      LS_CHECK(value.dim() == 0, ShapeError,
               "[index_fill] the value must be a 0-d tensor, got shape {}.", value.shape());
      // The mask makes `value` count once where the index repeats, also in its gradient.
      const Tensor nowhere = zeros(self.sizes(), {DType::kBool, self.device()});
      return where(index_fill(nowhere, dim, index, Scalar(true)), value.to(self.dtype()), self);
    });
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  return op_index_fill_tensor(self, dim, index, value);
}

LS_OP(index_fill_tensor_, const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&),
      "index_fill_.int_Tensor(Tensor(a!) self, int dim, Tensor index, Tensor value) -> Tensor(a!)")
    .doc("index_fill.int_Tensor in place.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& value) -> const Tensor& {
      return copy_(self, index_fill(self, dim, index, value));
    });

LS_OP(index_fill_tensor_out,
      const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, const Tensor&),
      "index_fill.int_Tensor_out(Tensor self, int dim, Tensor index, Tensor value, *, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("index_fill.int_Tensor, written into out.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, index_fill(self, dim, index, value));
    });

LS_OP(masked_fill_tensor, Tensor(const Tensor&, const Tensor&, const Tensor&),
      "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor")
    .doc("self with the 0-d value where mask is true.")
    .composite([](const Tensor& self, const Tensor& mask, const Tensor& value) {
      LS_CHECK(value.dim() == 0, ShapeError,
               "[masked_fill] the value must be a 0-d tensor, got shape {}.", value.shape());
      LS_CHECK(mask.dtype() == DType::kBool, DTypeError,
               "[masked_fill] mask must be a bool tensor, got {}. Compare it: ne(mask, 0).",
               to_string(mask));
      return where(mask, value.to(self.dtype()), self).contiguous();
    });
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  return op_masked_fill_tensor(self, mask, value);
}

LS_OP(masked_fill_tensor_, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)")
    .doc("Writes the 0-d value into self where mask is true.")
    .composite([](const Tensor& self, const Tensor& mask, const Tensor& value) -> const Tensor& {
      return copy_(self, op_masked_fill_tensor(self, mask, value));
    });

LS_OP(masked_fill_tensor_out,
      const Tensor&(const Tensor&, const Tensor&, const Tensor&, const Tensor&),
      "masked_fill.Tensor_out(Tensor self, Tensor mask, Tensor value, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("masked_fill.Tensor, written into out.")
    .composite([](const Tensor& self, const Tensor& mask, const Tensor& value,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, masked_fill(self, mask, value));
    });

LS_OP(take_along_dim, Tensor(const Tensor&, const Tensor&, std::optional<int64_t>),
      "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
    .doc("gather with self and indices broadcast together outside the dimension.")
    .composite([](const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
      // Without a dimension int32 is accepted as by gather, as in ATen.
      const bool narrow = !dim && indices.dtype() == DType::kI32;
      LS_CHECK(indices.dtype() == DType::kI64 || narrow, DTypeError,
               "[take_along_dim] indices must be int64, got {}. Cast them with to(DType::kI64).",
               to_string(indices.dtype()));
      if (!dim) {
        return gather(self.reshape({self.numel()}), 0, indices.reshape({indices.numel()}));
      }
      LS_CHECK(self.dim() == indices.dim(), ShapeError,
               "[take_along_dim] expected as many dimensions as self {} has, got {}.", self.shape(),
               indices.shape());
      const int64_t d = wrap_dim("take_along_dim", *dim, self.dim());
      if (self.dim() == 0) return gather(self, 0, indices);
      LS_CHECK(self.size(d) > 0 || indices.numel() == 0, IndexError,
               "[take_along_dim] dimension {} of {} has nothing to take.", d, self.shape());
      // As in ATen, an index past the end wraps around.
      const Tensor wrapped = remainder(indices, std::max<int64_t>(self.size(d), 1));
      Dims self_sizes = to_dims(self.sizes());
      Dims index_sizes = to_dims(indices.sizes());
      self_sizes[d] = 1;
      index_sizes[d] = 1;
      Dims common = broadcast("take_along_dim", self_sizes, index_sizes);
      common[d] = self.size(d);
      const Tensor from = self.expand(common);
      common[d] = indices.size(d);
      return gather(from, d, wrapped.expand(common));
    });
Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  return op_take_along_dim(self, indices, dim);
}

LS_OP(take_along_dim_out,
      const Tensor&(const Tensor&, const Tensor&, std::optional<int64_t>, const Tensor&),
      "take_along_dim.out(Tensor self, Tensor indices, int? dim=None, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("take_along_dim, written into out.")
    .composite([](const Tensor& self, const Tensor& indices, std::optional<int64_t> dim,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, take_along_dim(self, indices, dim));
    });

}  // namespace lockstep
