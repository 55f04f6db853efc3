// Views of a part of a tensor: along one dimension, or its diagonal.

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/batching_views.h"
#include "core/ops/view/own_geometry.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/shape_rules.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

/// Start and length of a slice as Python reads them: negative from the end, clamped.
std::pair<int64_t, int64_t> slice_range(int64_t size, std::optional<int64_t> start,
                                        std::optional<int64_t> end, int64_t step) {
  LS_CHECK(step > 0, ShapeError, "[slice] step must be positive, got {}.", step);
  const auto place = [size](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size);
  };
  const int64_t first = place(start.value_or(0));
  const int64_t last = std::max(first, place(end.value_or(size)));
  return {first, last == first ? 0 : (last - first - 1) / step + 1};
}

ViewSpec select_geometry(const Tensor& self, int64_t dim, int64_t index) {
  LS_CHECK(self.dim() > 0, IndexError, "[select] a 0-d tensor has no dimension to select from.");
  const int64_t d = wrap_dim("select", dim, self.dim());
  const int64_t size = self.sizes()[d];
  LS_CHECK(index >= -size && index < size, IndexError,
           "[select] index out of range: expected one in [{}, {}) for dimension {} of {}, got {}.",
           -size, size, d, self.shape(), index);
  ViewSpec spec = same_as(self);
  spec.offset += (index < 0 ? index + size : index) * spec.strides[d];
  spec.sizes.erase(d);
  spec.strides.erase(d);
  return spec;
}

ViewSpec slice_geometry(const Tensor& self, int64_t dim, std::optional<int64_t> start,
                        std::optional<int64_t> end, int64_t step) {
  LS_CHECK(self.dim() > 0, IndexError, "[slice] a 0-d tensor has no dimension to slice.");
  const int64_t d = wrap_dim("slice", dim, self.dim());
  const auto [first, length] = slice_range(self.sizes()[d], start, end, step);
  ViewSpec spec = same_as(self);
  spec.offset += first * spec.strides[d];
  spec.sizes[d] = length;
  // A step past the end leaves one element; the clamp keeps its stride from overflowing int64.
  spec.strides[d] *= std::min(step, std::max<int64_t>(self.sizes()[d], 1));
  return spec;
}

std::vector<ViewSpec> split_geometry(const Tensor& self, int64_t split_size, int64_t dim) {
  LS_CHECK(self.dim() > 0, IndexError, "[split] a 0-d tensor cannot be split.");
  const int64_t d = wrap_dim("split", dim, self.dim());
  const int64_t size = self.sizes()[d];
  LS_CHECK(split_size > 0 || (split_size == 0 && size == 0), ShapeError,
           "[split] split_size must be positive, got {}.", split_size);
  rules::check_part_count("split", size / std::max<int64_t>(split_size, 1));
  std::vector<ViewSpec> specs;
  for (int64_t first = 0; first < size || specs.empty();
       first += std::max<int64_t>(split_size, 1)) {
    ViewSpec& spec = specs.emplace_back(same_as(self));
    spec.offset += first * spec.strides[d];
    spec.sizes[d] = std::min(split_size, size - first);
  }
  return specs;
}

std::vector<ViewSpec> split_with_sizes_geometry(const Tensor& self, IntList split_sizes,
                                                int64_t dim) {
  LS_CHECK(self.dim() > 0, IndexError, "[split_with_sizes] a 0-d tensor cannot be split.");
  const int64_t d = wrap_dim("split_with_sizes", dim, self.dim());
  int64_t first = 0;
  bool fits = true;
  std::vector<ViewSpec> specs;
  for (const int64_t length : split_sizes) {
    fits = fits && length >= 0 && length <= self.sizes()[d] - first;
    if (!fits) break;
    ViewSpec& spec = specs.emplace_back(same_as(self));
    spec.offset += first * spec.strides[d];
    spec.sizes[d] = length;
    first += length;
  }
  LS_CHECK(
      fits && first == self.sizes()[d], ShapeError,
      "[split_with_sizes] expected sizes, none negative, that add up to {} for dimension {} of "
      "{}, got {}.",
      self.sizes()[d], d, self.shape(), to_string(split_sizes));
  return specs;
}

std::vector<ViewSpec> unbind_geometry(const Tensor& self, int64_t dim) {
  LS_CHECK(self.dim() > 0, IndexError, "[unbind] a 0-d tensor has no dimension to unbind.");
  const int64_t d = wrap_dim("unbind", dim, self.dim());
  const int64_t count = self.sizes()[d];
  rules::check_part_count("unbind", count);
  std::vector<ViewSpec> specs;
  specs.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) specs.push_back(select_geometry(self, d, i));
  return specs;
}

ViewSpec unfold_geometry(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = wrap_dim("unfold", dimension, self.dim());
  const int64_t length = self.dim() == 0 ? 1 : self.sizes()[d];
  LS_CHECK(step > 0, ShapeError, "[unfold] step must be positive, got {}.", step);
  LS_CHECK(size >= 0 && size <= length, ShapeError,
           "[unfold] the window does not fit: expected a size in [0, {}] for dimension {} of {}, "
           "got {}.",
           length, d, self.shape(), size);
  ViewSpec spec = same_as(self);
  const int64_t stride = self.dim() == 0 ? 1 : spec.strides[d];
  if (self.dim() > 0) {
    spec.sizes[d] = (length - size) / step + 1;
    // With one window the stride is irrelevant; the clamp keeps a huge step from overflowing int64.
    spec.strides[d] = stride * std::min(step, std::max<int64_t>(length, 1));
  }
  spec.sizes.push_back(size);
  spec.strides.push_back(stride);
  return spec;
}

ViewSpec diagonal_geometry(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  ViewSpec spec = rules::diagonal_of("diagonal", self.sizes(), self.strides(), offset, dim1, dim2);
  spec.offset += self.storage_offset();
  return spec;
}

/// cat of any number of parts. A recorded call takes a limited number of tensors, so that more are
/// joined in groups.
Tensor cat_all(std::vector<Tensor> parts, int64_t dim) {
  constexpr size_t kMostRecorded = 64;
  const auto records = [&] { return std::ranges::any_of(parts, &Tensor::requires_grad); };
  while (parts.size() > kMostRecorded && records()) {
    std::vector<Tensor> groups;
    for (size_t first = 0; first < parts.size(); first += kMostRecorded) {
      const size_t count = std::min(kMostRecorded, parts.size() - first);
      groups.push_back(cat(TensorList(parts).subspan(first, count), dim));
    }
    parts = std::move(groups);
  }
  return cat(parts, dim);
}

/// The gradient of a tensor split along `dim`: its parts' gradients joined, zeros for missing ones.
Tensor joined(const VjpContext& ctx, std::span<const Tensor> grads, IntList lengths, int64_t dim) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < grads.size(); ++i) {
    Dims sizes = to_dims(ctx.sizes(0));
    sizes[dim] = lengths[i];
    parts.push_back(grads[i].defined() ? grads[i]
                                       : zeros(sizes, {ctx.input(0).dtype, ctx.input(0).device}));
  }
  return cat_all(std::move(parts), dim);
}

}  // namespace

LS_OP(select, Tensor(const Tensor&, int64_t, int64_t),
      "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)")
    .doc("The part of self at `index` of dimension `dim`, without that dimension.")
    .view(select_geometry)
    .batching(batching::part)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return select_backward(grad, ctx.sizes(0), ctx.argument<int64_t>(1),
                               ctx.argument<int64_t>(2));
      });
    });
Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  return op_select(self, dim, index);
}

LS_OP(
    slice, Tensor(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>, int64_t),
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
    "-> Tensor(a)")
    .doc("Every step-th slice from start up to end, exclusive; out-of-range bounds are clamped.")
    .view(slice_geometry)
    .batching(batching::part)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const int64_t dim = ctx.argument<int64_t>(1);
        const int64_t size = ctx.sizes(0)[wrap_dim("slice", dim, grad.dim())];
        return slice_backward(
            grad, ctx.sizes(0), dim, ctx.argument<std::optional<int64_t>>(2).value_or(0),
            ctx.argument<std::optional<int64_t>>(3).value_or(size), ctx.argument<int64_t>(4));
      });
    });
Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  return op_slice(self, dim, start, end, step);
}

LS_OP(split, std::vector<Tensor>(const Tensor&, int64_t, int64_t),
      "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
    .doc("Splits a dimension into parts of split_size; the last may be smaller.")
    .view(split_geometry)
    .batching(batching::part)
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      return ctx.gradients([&] {
        const int64_t dim =
            wrap_dim("split", ctx.argument<int64_t>(2), static_cast<int64_t>(ctx.sizes(0).size()));
        const int64_t split_size = ctx.argument<int64_t>(1);
        Dims lengths(grads.size(), split_size);
        lengths.back() = ctx.sizes(0)[dim] - split_size * static_cast<int64_t>(grads.size() - 1);
        return joined(ctx, grads, lengths, dim);
      });
    });
std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  return op_split(self, split_size, dim);
}

LS_OP(split_with_sizes, std::vector<Tensor>(const Tensor&, IntList, int64_t),
      "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]")
    .doc("Splits a dimension into parts of the given sizes.")
    .view(split_with_sizes_geometry)
    .batching(batching::part)
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      return ctx.gradients([&] {
        const int64_t dim = wrap_dim("split_with_sizes", ctx.argument<int64_t>(2),
                                     static_cast<int64_t>(ctx.sizes(0).size()));
        return joined(ctx, grads, ctx.argument<IntList>(1), dim);
      });
    });
std::vector<Tensor> split_with_sizes(const Tensor& self, IntList split_sizes, int64_t dim) {
  return op_split_with_sizes(self, split_sizes, dim);
}

LS_OP(split_sizes, std::vector<Tensor>(const Tensor&, IntList, int64_t),
      "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]")
    .doc("split_with_sizes by another name.")
    .composite([](const Tensor& self, IntList split_size, int64_t dim) {
      return split_with_sizes(self, split_size, dim);
    });

LS_OP(unbind, std::vector<Tensor>(const Tensor&, int64_t),
      "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]")
    .doc("The slices along a dimension, without that dimension.")
    .view(unbind_geometry)
    .batching(batching::part)
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      return ctx.gradients([&] {
        Dims sizes = to_dims(ctx.sizes(0));
        const int64_t dim = wrap_dim("unbind", ctx.argument<int64_t>(1), std::ssize(sizes));
        sizes[static_cast<size_t>(dim)] = 1;
        std::vector<Tensor> parts;
        for (const Tensor& grad : grads) {
          parts.push_back(grad.defined() ? grad.unsqueeze(dim)
                                         : zeros(sizes, {ctx.input(0).dtype, ctx.input(0).device}));
        }
        return cat_all(std::move(parts), dim);
      });
    });
std::vector<Tensor> unbind(const Tensor& self, int64_t dim) { return op_unbind(self, dim); }

LS_OP(unfold, Tensor(const Tensor&, int64_t, int64_t, int64_t),
      "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)")
    .doc("Windows of `size` elements, `step` apart, along a dimension; they become the last one.")
    .view(unfold_geometry)
    .batching(batching::unfold)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return unfold_backward(grad, ctx.sizes(0), ctx.argument<int64_t>(1),
                               ctx.argument<int64_t>(2), ctx.argument<int64_t>(3));
      });
    });
Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return op_unfold(self, dimension, size, step);
}

LS_OP(diagonal, Tensor(const Tensor&, int64_t, int64_t, int64_t),
      "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)")
    .doc("The diagonal of two dimensions, `offset` above (or below) the main one, as the last one.")
    .view(diagonal_geometry)
    .batching(batching::part)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return diagonal_backward(grad, ctx.sizes(0), ctx.argument<int64_t>(1),
                                 ctx.argument<int64_t>(2), ctx.argument<int64_t>(3));
      });
    });
Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return op_diagonal(self, offset, dim1, dim2);
}

}  // namespace lockstep
