#include "core/ops/index/index.h"

#include "core/base/check.h"
#include "core/dispatch/arrived_gradient.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/image/pad.h"
#include "core/ops/index/batching_indexing.h"
#include "core/ops/index/index_checks.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/number_range.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
namespace {

Outputs embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  LS_CHECK(weight.dim() == 2, ShapeError,
           "[embedding] the weight must be a matrix [rows, width], got shape {}.", weight.shape());
  check_index("embedding", indices);
  Dims sizes = to_dims(indices.sizes());
  sizes.push_back(weight.sizes()[1]);
  return one(std::move(sizes), weight.dtype());
}

Outputs embedding_dense_backward(const Tensor& grad_output, const Tensor& indices,
                                 int64_t num_weights, int64_t, bool) {
  check_index("embedding_dense_backward", indices);
  const int64_t rank = indices.dim();
  bool fits = grad_output.dim() == rank + 1;
  for (int64_t i = 0; fits && i < rank; ++i) fits = grad_output.sizes()[i] == indices.sizes()[i];
  LS_CHECK(fits, ShapeError,
           "[embedding_dense_backward] expected a gradient of shape {} plus one dimension, got {}.",
           indices.shape(), grad_output.shape());
  LS_CHECK(is_floating(grad_output.dtype()), DTypeError,
           "[embedding_dense_backward] expected a floating gradient, got {}.",
           to_string(grad_output.dtype()));
  return one({num_weights, grad_output.sizes()[rank]}, grad_output.dtype());
}

Outputs embedding_gradient_added(const Tensor& self, const Tensor& grad_output,
                                 const Tensor& indices, int64_t padding_idx, bool by_frequency) {
  LS_CHECK(self.dim() == 2, ShapeError,
           "[_embedding_gradient_added] expected a matrix [rows, width], got shape {}.",
           self.shape());
  const int64_t width = grad_output.dim() > 0 ? grad_output.size(-1) : 0;
  LS_CHECK(width == self.size(1) && grad_output.dtype() == self.dtype(), ShapeError,
           "[_embedding_gradient_added] expected a {} gradient of width {}, got {} of shape {}.",
           to_string(self.dtype()), self.size(1), to_string(grad_output.dtype()),
           grad_output.shape());
  return rules::embedding_dense_backward(grad_output, indices, self.size(0), padding_idx,
                                         by_frequency);
}

Outputs index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  check_index("index_select", index);
  LS_CHECK(index.dim() <= 1, ShapeError,
           "[index_select] the index must have one dimension, got shape {}. Use flatten().",
           index.shape());
  const int64_t d = wrap_dim("index_select", dim, self.dim());
  LS_CHECK(self.dim() > 0 || index.numel() == 1, IndexError,
           "[index_select] a 0-d tensor has one element: expected one index, got {}.",
           index.numel());
  Dims sizes = to_dims(self.sizes());
  if (self.dim() > 0) sizes[d] = index.numel();
  return one(std::move(sizes), self.dtype());
}

Outputs index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  Scalar alpha) {
  check_index("index_add", index);
  check_same_dtype("index_add", self, source);
  check_holds("index_add", "alpha", self.dtype(), alpha);
  LS_CHECK(index.dim() <= 1, ShapeError,
           "[index_add] the index must have one dimension, got shape {}. Use flatten().",
           index.shape());
  const int64_t d = wrap_dim("index_add", dim, self.dim());
  Dims wanted = to_dims(self.sizes());
  if (self.dim() > 0) wanted[d] = index.numel();
  const bool one_each = self.dim() == 0 && source.numel() == 1 && index.numel() == 1;
  LS_CHECK(one_each || same(source.sizes(), wanted), ShapeError,
           "[index_add] the source does not fit: expected shape {}, got {}.", to_string(wanted),
           source.shape());
  return one(to_dims(self.sizes()), self.dtype());
}

Outputs gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  check_places("gather", index);
  const int64_t d = wrap_dim("gather", dim, self.dim());
  check_covers("gather", "self", self, index, d);
  return one(to_dims(index.sizes()), self.dtype());
}

Outputs scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_places("scatter_add", index);
  check_same_dtype("scatter_add", self, src);
  const int64_t d = wrap_dim("scatter_add", dim, self.dim());
  check_covers("scatter_add", "self", self, index, d);
  check_covers("scatter_add", "src", src, index, -1);
  return one(to_dims(self.sizes()), self.dtype());
}

Outputs masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  LS_CHECK(mask.dtype() == DType::kBool, DTypeError,
           "[masked_scatter] expected a bool mask, got {}.", to_string(mask.dtype()));
  check_same_dtype("masked_scatter", self, source);
  return one(broadcast("masked_scatter", self.sizes(), mask.sizes()), self.dtype());
}

Outputs triangle(const Tensor& self, int64_t) {
  LS_CHECK(self.dim() >= 2, ShapeError,
           "[tril/triu] expected at least two dimensions, got shape {}.", self.shape());
  return one(to_dims(self.sizes()), self.dtype());
}

}  // namespace
}  // namespace rules

namespace {

Tensor zeros_of(const InputMeta& input) { return zeros(input.sizes, {input.dtype, input.device}); }

/// The number of occurrences of each of the indices, all below `rows`: [..., 1].
Tensor frequencies(const Tensor& indices, int64_t rows) {
  const TensorOptions options(DType::kF32, indices.device());
  const Tensor flat = indices.flatten();
  const Tensor each = index_add(zeros({rows}, options), 0, flat, ones(flat.sizes(), options));
  return index_select(each, 0, flat).reshape(indices.sizes()).unsqueeze(-1);
}

/// `sum` plus the gradient of an embedding's weight, in place where it may be.
Tensor added_to(ArrivedSum sum, const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                bool by_frequency) {
  if (grad.requires_grad() || sum.tensor.requires_grad()) {
    return sum.tensor +
           embedding_gradient(grad, indices, sum.tensor.size(0), padding_idx, by_frequency);
  }
  if (!sum.is_writable) {
    return _embedding_gradient_added(sum.tensor, grad, indices, padding_idx, by_frequency);
  }
  _embedding_gradient_added_(sum.tensor, grad, indices, padding_idx, by_frequency);
  return std::move(sum.tensor);
}

/// The elements of `values` where the mask is true, in order, padded with zeros to a tensor of
/// `sizes`.
Tensor taken_in_order(const Tensor& values, const Tensor& mask, IntList sizes) {
  const Tensor none = zeros({count_elements(sizes)}, values.options());
  if (none.numel() == 0) return none.reshape(sizes);
  const Tensor taken = mask.expand(values.sizes()).flatten();
  const Tensor place = clamp_min(cumsum(taken, 0) - 1, 0);
  const Tensor used = masked_fill(values.flatten(), logical_not(taken), 0);
  return index_add(none, 0, place, used).reshape(sizes);
}

}  // namespace

LS_OP(embedding, Tensor(const Tensor&, const Tensor&, int64_t, bool, bool),
      "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
      "scale_grad_by_freq=False, bool sparse=False) -> Tensor")
    .doc("Rows of weight [rows, width] at indices [...]: [..., width].")
    .structured(rules::embedding)
    .batching(batching::embedding)
    .out()
    .saves({"indices for weight"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      LS_CHECK(!ctx.argument<bool>(4), AutogradError,
               "[embedding] sparse gradients are not supported. Pass sparse=false.");
      return ctx.gradients(
          [&] {
            const Tensor& indices = ctx.saved(0);
            const int64_t rows = ctx.sizes(0)[0];
            const int64_t padding = ctx.argument<int64_t>(2);
            const bool by_frequency = ctx.argument<bool>(3);
            // Other uses of the weight, as a tied classifier's, have sent theirs before: only the
            // rows that were read are added to it.
            if (ArrivedSum sum = take_arrived_sum(0); sum.tensor.defined()) {
              return added_to(std::move(sum), grad, indices, padding, by_frequency);
            }
            const Tensor destination = ctx.destination(0);
            return destination.defined()
                       ? embedding_dense_backward_out(destination, grad, indices, rows, padding,
                                                      by_frequency)
                       : embedding_gradient(grad, indices, rows, padding, by_frequency);
          },
          [] { return Tensor(); });
    });
Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx,
                 bool scale_grad_by_freq, bool sparse) {
  return op_embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse);
}

LS_OP(embedding_dense_backward, Tensor(const Tensor&, const Tensor&, int64_t, int64_t, bool),
      "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt "
      "padding_idx, bool scale_grad_by_freq) -> Tensor")
    .doc("Sums grad_output into rows of zeros at indices: the derivative of embedding.")
    .structured(rules::embedding_dense_backward)
    .batching(batching::embedding_dense_backward)
    .out()
    .saves({"indices for grad_output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] {
            // As in ATen, this derivative ignores the factors of scale_grad_by_freq.
            const Tensor& indices = ctx.saved(0);
            const int64_t padding = ctx.argument<int64_t>(3);
            const Tensor rows = embedding(grad, indices, padding);
            if (padding < 0) return rows;
            return masked_fill(rows, eq(indices, padding).unsqueeze(-1), 0);
          },
          [] { return Tensor(); });
    });
Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices,
                                int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq) {
  return op_embedding_dense_backward(grad_output, indices, num_weights, padding_idx,
                                     scale_grad_by_freq);
}
const Tensor& embedding_dense_backward_out(const Tensor& out, const Tensor& grad_output,
                                           const Tensor& indices, int64_t num_weights,
                                           int64_t padding_idx, bool scale_grad_by_freq) {
  return op_embedding_dense_backward.out(grad_output, indices, num_weights, padding_idx,
                                         scale_grad_by_freq, out);
}

LS_OP(embedding_gradient_added, Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t, bool),
      "_embedding_gradient_added(Tensor self, Tensor grad_output, Tensor indices, SymInt "
      "padding_idx, bool scale_grad_by_freq) -> Tensor")
    .doc("self + embedding_dense_backward(grad_output, ...); rows without a use stay as they are.")
    .structured(rules::embedding_gradient_added)
    .in_place()
    .not_differentiable("it is embedding's derivative where that is not recorded");
Tensor _embedding_gradient_added(const Tensor& self, const Tensor& grad_output,
                                 const Tensor& indices, int64_t padding_idx,
                                 bool scale_grad_by_freq) {
  return op_embedding_gradient_added(self, grad_output, indices, padding_idx, scale_grad_by_freq);
}
const Tensor& _embedding_gradient_added_(const Tensor& self, const Tensor& grad_output,
                                         const Tensor& indices, int64_t padding_idx,
                                         bool scale_grad_by_freq) {
  return op_embedding_gradient_added.in_place(self, grad_output, indices, padding_idx,
                                              scale_grad_by_freq);
}

Tensor embedding_gradient(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                          int64_t padding_idx, bool scale_grad_by_freq) {
  if (!scale_grad_by_freq || !grad_output.requires_grad()) {
    return embedding_dense_backward(grad_output, indices, num_weights, padding_idx,
                                    scale_grad_by_freq);
  }
  const Tensor shares = (grad_output / frequencies(indices, num_weights)).to(grad_output.dtype());
  return embedding_dense_backward(shares, indices, num_weights, padding_idx, false);
}

LS_OP(index_select, Tensor(const Tensor&, int64_t, const Tensor&),
      "index_select(Tensor self, int dim, Tensor index) -> Tensor")
    .doc("The slices of self at index along a dimension.")
    .structured(rules::index_select)
    .batching(batching::index_select)
    .out()
    .saves({"index for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] {
            return index_add(zeros_of(ctx.input(0)), ctx.argument<int64_t>(1), ctx.saved(0), grad);
          },
          [] { return Tensor(); });
    });
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  return op_index_select(self, dim, index);
}

LS_OP(index_add, Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, Scalar),
      "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor")
    .doc("A copy of self with alpha times the slices of source added at index along a dimension.")
    .structured(rules::index_add)
    .batching(batching::index_write)
    .in_place()
    .out()
    .saves({"index for source"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad; }, [] { return Tensor(); },
                           [&] {
                             const Tensor parts =
                                 index_select(grad, ctx.argument<int64_t>(1), ctx.saved(0));
                             return (parts * ctx.argument<Scalar>(4)).reshape(ctx.sizes(2));
                           });
    });
Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha) {
  return op_index_add(self, dim, index, source, alpha);
}

LS_OP(gather, Tensor(const Tensor&, int64_t, const Tensor&, bool),
      "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor")
    .doc("For each element of index, the element of self at that index along a dimension.")
    .structured(rules::gather)
    .batching(batching::gather)
    .out()
    .saves({"index for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] {
            return scatter_add(zeros_of(ctx.input(0)), ctx.argument<int64_t>(1), ctx.saved(0),
                               grad);
          },
          [] { return Tensor(); });
    });
Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad) {
  return op_gather(self, dim, index, sparse_grad);
}

LS_OP(scatter_add, Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&),
      "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
    .doc("A copy of self with each element of src added at its index along a dimension.")
    .structured(rules::scatter_add)
    .batching(batching::gather)
    .in_place()
    .out()
    .autocast(Autocast::kPromote)
    .saves({"index for src"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return grad; }, [] { return Tensor(); },
          [&] {
            // Elements of src not covered by the index were not read: their gradient is 0.
            return zero_extend(gather(grad, ctx.argument<int64_t>(1), ctx.saved(0)), ctx.sizes(2));
          });
    });
Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return op_scatter_add(self, dim, index, src);
}

LS_OP(nonzero, Tensor(const Tensor&), "nonzero(Tensor self) -> Tensor")
    .doc("Coordinates of the non-zero elements, one row each.")
    .dynamic()
    .not_differentiable("coordinates are integers");
Tensor nonzero(const Tensor& self) { return op_nonzero(self); }

LS_OP(nonzero_out, const Tensor&(const Tensor&, const Tensor&),
      "nonzero.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("nonzero, written into out.")
    .composite([](const Tensor& self, const Tensor& out) -> const Tensor& {
      LS_CHECK(out.dtype() == DType::kI64, DTypeError,
               "[nonzero] coordinates are int64: expected an out of that dtype, got {}.",
               to_string(out.dtype()));
      return clone_indices_out("nonzero", out, nonzero(self));
    });

LS_OP(masked_select, Tensor(const Tensor&, const Tensor&),
      "masked_select(Tensor self, Tensor mask) -> Tensor")
    .doc("The elements where the mask is true, in row-major order.")
    .dynamic()
    .saves({"mask for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] {
            const Dims sizes = broadcast("masked_select", ctx.sizes(0), ctx.saved(0).sizes());
            const Tensor zero = zeros(sizes, grad.options());
            return ctx.unbroadcast(masked_scatter(zero, ctx.saved(0), grad), 0);
          },
          [] { return Tensor(); });
    });
Tensor masked_select(const Tensor& self, const Tensor& mask) {
  return op_masked_select(self, mask);
}

LS_OP(masked_select_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "masked_select.out(Tensor self, Tensor mask, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("masked_select, written into out.")
    .composite([](const Tensor& self, const Tensor& mask, const Tensor& out) -> const Tensor& {
      return clone_out(out, masked_select(self, mask));
    });

LS_OP(masked_scatter, Tensor(const Tensor&, const Tensor&, const Tensor&),
      "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor")
    .doc("A copy of self with the elements of source written in order where the mask is true.")
    .structured(rules::masked_scatter)
    .out()
    .saves({"mask for self, source"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return ctx.unbroadcast(masked_fill(grad, ctx.saved(0), 0), 0); },
                           [] { return Tensor(); },
                           [&] { return taken_in_order(grad, ctx.saved(0), ctx.sizes(2)); });
    });
Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  return op_masked_scatter(self, mask, source);
}

LS_OP(masked_scatter_, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)")
    .doc("Writes the elements of source in order where the mask is true.")
    .composite([](const Tensor& self, const Tensor& mask, const Tensor& source) -> const Tensor& {
      // In the functional form the mask may broadcast self, in place it may not.
      return copy_(self, masked_scatter(self, mask.expand(self.sizes()), source));
    });

LS_OP(tril, Tensor(const Tensor&, int64_t), "tril(Tensor self, SymInt diagonal=0) -> Tensor")
    .doc("The lower triangles of the last two dimensions, the rest zero.")
    .structured(rules::triangle)
    .batching(batching::triangle)
    .in_place()
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return tril(grad, ctx.argument<int64_t>(1)); });
    });
Tensor tril(const Tensor& self, int64_t diagonal) { return op_tril(self, diagonal); }

LS_OP(triu, Tensor(const Tensor&, int64_t), "triu(Tensor self, SymInt diagonal=0) -> Tensor")
    .doc("The upper triangles of the last two dimensions, the rest zero.")
    .structured(rules::triangle)
    .batching(batching::triangle)
    .in_place()
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return triu(grad, ctx.argument<int64_t>(1)); });
    });
Tensor triu(const Tensor& self, int64_t diagonal) { return op_triu(self, diagonal); }

}  // namespace lockstep
