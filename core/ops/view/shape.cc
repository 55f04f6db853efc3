#include "core/ops/view/shape.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/batching_indexing.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/sort.h"
#include "core/ops/view/kept_layout.h"
#include "core/ops/view/shape_rules.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {
namespace {

/// Whether cat ignores the tensor: as in ATen, one of shape [0] joins tensors of any rank.
bool is_nothing(const Tensor& tensor) { return tensor.dim() == 1 && tensor.numel() == 0; }

/// A result with the shape, dtype and layout of `self`.
Outputs copy_of(const Tensor& self) {
  Outputs outputs = one(self.sizes(), self.dtype());
  keep_layout(outputs.specs[0], self);
  return outputs;
}

/// Makes the result channels-last if all tensors are.
void keep_common_format(OutputSpec& spec, TensorList tensors) {
  for (const Tensor& tensor : tensors) {
    if (!suggests_channels_last(tensor.sizes(), tensor.strides())) return;
  }
  spec.strides = channels_last_strides(spec.sizes);
}

Outputs cat(TensorList tensors, int64_t dim) {
  LS_CHECK(!tensors.empty(), ShapeError, "[cat] expected at least one tensor, got none.");
  const Tensor* first = &tensors[0];
  DType dtype = first->dtype();
  for (const Tensor& tensor : tensors) {
    dtype = promote(dtype, tensor.dtype());
    if (is_nothing(*first) && !is_nothing(tensor)) first = &tensor;
  }
  LS_CHECK(first->dim() > 0, ShapeError,
           "[cat] 0-d tensors have no dimension to join along: expected at least one. Use stack.");
  const int64_t d = wrap_dim("cat", dim, first->dim());
  Dims sizes = to_dims(first->sizes());
  sizes[d] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (is_nothing(tensor)) continue;
    bool fits = tensor.dim() == first->dim();
    for (int64_t k = 0; fits && k < tensor.dim(); ++k) {
      fits = k == d || tensor.sizes()[k] == first->sizes()[k];
    }
    LS_CHECK(fits, ShapeError,
             "[cat] sizes differ outside dimension {}: expected tensor {} to fit {}, got {}.", d, i,
             first->shape(), tensor.shape());
    sizes[d] = (CheckedInt("cat", sizes[d]) + tensor.sizes()[d]).value();
  }
  Outputs outputs = one(std::move(sizes), dtype);
  keep_common_format(outputs.specs[0], tensors);
  outputs.compute = dtype;
  return outputs;
}
Outputs slice_scatter(const Tensor& self, const Tensor& source, int64_t dim,
                      std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  LS_CHECK(self.dim() > 0, IndexError, "[slice_scatter] a 0-d tensor has no dimension to slice.");
  LS_CHECK(step > 0, ShapeError, "[slice_scatter] step must be positive, got {}.", step);
  const int64_t d = wrap_dim("slice_scatter", dim, self.dim());
  const int64_t size = self.sizes()[d];
  const auto place = [size](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size);
  };
  const int64_t first = place(start.value_or(0));
  const int64_t last = std::max(first, place(end.value_or(size)));
  Dims slice = to_dims(self.sizes());
  slice[d] = last == first ? 0 : (last - first - 1) / step + 1;
  LS_CHECK(same(source.sizes(), slice), ShapeError,
           "[slice_scatter] the source does not fit the slice: expected shape {}, got {}.",
           to_string(slice), source.shape());
  Outputs outputs = copy_of(self);
  outputs.compute = self.dtype();
  return outputs;
}
Outputs diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                         int64_t dim2) {
  const ViewSpec place =
      diagonal_of("diagonal_scatter", self.sizes(), self.strides(), offset, dim1, dim2);
  LS_CHECK(same(src.sizes(), place.sizes), ShapeError,
           "[diagonal_scatter] src does not fit the diagonal: expected shape {}, got {}.",
           to_string(place.sizes), src.shape());
  Outputs outputs = copy_of(self);
  outputs.compute = self.dtype();
  return outputs;
}
Outputs flip(const Tensor& self, IntList dims) {
  if (!dims.empty()) dim_mask("flip", dims, self.dim());
  return copy_of(self);
}

}  // namespace
}  // namespace rules

LS_OP(cat, Tensor(TensorList, int64_t), "cat(Tensor[] tensors, int dim=0) -> Tensor")
    .doc("Joins tensors along an existing dimension.")
    .structured(rules::cat)
    .batching(batching::cat)
    .out()
    .autocast(Autocast::kPromote)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      Gradients gradients;
      int64_t place = 0;
      for (size_t i = 0; i < ctx.input_count(); ++i) {
        const InputMeta& part = ctx.input(i);
        const bool nothing = part.sizes.size() == 1 && part.sizes[0] == 0;
        if (nothing) {
          gradients.push_back(ctx.needs(i) ? zeros(part.sizes, {part.dtype, part.device})
                                           : Tensor());
          continue;
        }
        const int64_t dim = wrap_dim("cat", ctx.argument<int64_t>(1), grad.dim());
        const int64_t length = part.sizes[dim];
        Tensor slice;
        if (ctx.needs(i)) {
          slice = grad.slice(dim, place, place + length);
          if (slice.dtype() != part.dtype) slice = slice.to(part.dtype);
        }
        gradients.push_back(slice);
        place += length;
      }
      return gradients;
    });
Tensor cat(TensorList tensors, int64_t dim) { return op_cat(tensors, dim); }

LS_OP(stack, Tensor(TensorList, int64_t), "stack(Tensor[] tensors, int dim=0) -> Tensor")
    .doc("Joins tensors of one shape along a new dimension.")
    .autocast(Autocast::kPromote)
    .composite([](TensorList tensors, int64_t dim) {
      LS_CHECK(!tensors.empty(), ShapeError, "[stack] expected at least one tensor, got none.");
      const int64_t d = wrap_dim("stack", dim, tensors[0].dim() + 1);
      std::vector<Tensor> parts;
      for (const Tensor& tensor : tensors) {
        LS_CHECK(same(tensor.sizes(), tensors[0].sizes()), ShapeError,
                 "[stack] shapes differ: expected {}, got {}.", tensors[0].shape(), tensor.shape());
        parts.push_back(tensor.unsqueeze(d));
      }
      return cat(parts, d);
    });
Tensor stack(TensorList tensors, int64_t dim) { return op_stack(tensors, dim); }

LS_OP(stack_out, const Tensor&(TensorList, int64_t, const Tensor&),
      "stack.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("stack, written into out.")
    .composite([](TensorList tensors, int64_t dim, const Tensor& out) -> const Tensor& {
      return clone_out(out, stack(tensors, dim));
    });

LS_OP(slice_scatter,
      Tensor(const Tensor&, const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>,
             int64_t),
      "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
      "SymInt step=1) -> Tensor")
    .doc("A copy of self with src written into the slice.")
    .structured(rules::slice_scatter)
    .batching(batching::along_dims)
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const auto dim = ctx.argument<int64_t>(2);
      const auto start = ctx.argument<std::optional<int64_t>>(3);
      const auto end = ctx.argument<std::optional<int64_t>>(4);
      const auto step = ctx.argument<int64_t>(5);
      return ctx.gradients(
          [&] {
            const Tensor nothing = zeros(ctx.sizes(1), grad.options());
            return slice_scatter(grad, nothing, dim, start, end, step);
          },
          [&] {
            const Tensor part = grad.slice(dim, start, end, step);
            return part.dtype() == ctx.input(1).dtype ? part : part.to(ctx.input(1).dtype);
          });
    });
Tensor slice_scatter(const Tensor& self, const Tensor& source, int64_t dim,
                     std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  return op_slice_scatter(self, source, dim, start, end, step);
}

LS_OP(select_scatter, Tensor(const Tensor&, const Tensor&, int64_t, int64_t),
      "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor")
    .doc("A copy of self with src written at an index of a dimension.")
    .composite([](const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
      const Tensor part = self.select(dim, index);  // throws if dim or index is out of range
      LS_CHECK(same(src.sizes(), part.sizes()), ShapeError,
               "[select_scatter] src does not fit at the index: expected shape {}, got {}.",
               part.shape(), src.shape());
      const int64_t d = wrap_dim("select_scatter", dim, self.dim());
      const int64_t at = index < 0 ? index + self.size(d) : index;
      return slice_scatter(self, src.unsqueeze(d), d, at, at + 1, 1);
    });
Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  return op_select_scatter(self, src, dim, index);
}

LS_OP(select_scatter_out,
      const Tensor&(const Tensor&, const Tensor&, int64_t, int64_t, const Tensor&),
      "select_scatter.out(Tensor self, Tensor src, int dim, SymInt index, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("select_scatter, written into out.")
    .composite([](const Tensor& self, const Tensor& src, int64_t dim, int64_t index,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, select_scatter(self, src, dim, index));
    });

LS_OP(diagonal_scatter, Tensor(const Tensor&, const Tensor&, int64_t, int64_t, int64_t),
      "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor")
    .doc("A copy of self with src written on a diagonal.")
    .structured(rules::diagonal_scatter)
    .batching(batching::along_dims)
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const auto offset = ctx.argument<int64_t>(2);
      const auto dim1 = ctx.argument<int64_t>(3);
      const auto dim2 = ctx.argument<int64_t>(4);
      return ctx.gradients(
          [&] {
            return diagonal_scatter(grad, zeros(ctx.sizes(1), grad.options()), offset, dim1, dim2);
          },
          [&] { return ctx.unbroadcast(diagonal(grad, offset, dim1, dim2), 1); });
    });
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  return op_diagonal_scatter(self, src, offset, dim1, dim2);
}

LS_OP(flip, Tensor(const Tensor&, IntList), "flip(Tensor self, int[] dims) -> Tensor")
    .doc("The elements in the opposite order along dimensions.")
    .structured(rules::flip)
    .batching(batching::along_dims)
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return flip(grad, ctx.argument<IntList>(1)); });
    });
Tensor flip(const Tensor& self, IntList dims) { return op_flip(self, dims); }

LS_OP(repeat_interleave,
      Tensor(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>),
      "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? "
      "output_size=None) -> Tensor")
    .doc("Each slice along a dimension repeated several times in a row.")
    .composite([](const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                  std::optional<int64_t> output_size) {
      LS_CHECK(repeats >= 0, ShapeError,
               "[repeat_interleave] repeats must not be negative, got {}.", repeats);
      const Tensor input = dim && self.dim() > 0 ? self : self.reshape({self.numel()});
      const int64_t d = wrap_dim("repeat_interleave", dim.value_or(0), input.dim());
      Dims sizes = to_dims(input.sizes());
      const int64_t length = (CheckedInt("repeat_interleave", sizes[d]) * repeats).value();
      LS_CHECK(output_size.value_or(length) == length, ShapeError,
               "[repeat_interleave] output_size is wrong: expected {}, got {}.", length,
               output_size.value_or(length));
      sizes.insert(d + 1, repeats);
      const Tensor repeated = input.unsqueeze(d + 1).expand(sizes);
      sizes.erase(d + 1);
      sizes[d] = length;
      return clone(repeated, MemoryFormat::kContiguous).view(sizes);  // never a view of self
    });
Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim) {
  return op_repeat_interleave(self, repeats, dim, std::nullopt);
}

LS_OP(repeat_interleave_places, Tensor(const Tensor&, std::optional<int64_t>),
      "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor")
    .doc("Each index of repeats, repeated as many times as its element says.")
    .composite([](const Tensor& repeats, std::optional<int64_t> output_size) {
      LS_CHECK(!is_floating(repeats.dtype()) && repeats.dtype() != DType::kBool, DTypeError,
               "[repeat_interleave] repeats must be integers, got {}.", to_string(repeats));
      LS_CHECK(repeats.dim() == 1, ShapeError,
               "[repeat_interleave] repeats must be a vector, got shape {}.", repeats.shape());
      if (repeats.numel() == 0) return empty({0}, repeats.options());
      const bool has_values = repeats.device() != kMeta;
      LS_CHECK(!has_values || min(repeats).item<int64_t>() >= 0, ShapeError,
               "[repeat_interleave] repeats must not be negative.");
      LS_CHECK(!has_values || sum(repeats.to(DType::kF64)).item<double>() < 0x1p62, ShapeError,
               "[repeat_interleave] the repeats add up to 2^62 or more. Use smaller numbers.");
      const Tensor ends = cumsum(repeats, 0);
      int64_t length = output_size.value_or(0);
      if (!output_size || has_values) {
        length = ends.select(0, -1).item<int64_t>();
      }
      LS_CHECK(output_size.value_or(length) == length, ShapeError,
               "[repeat_interleave] output_size is wrong: expected {}, got {}.", length,
               output_size.value_or(length));
      const Tensor places = arange(Scalar(length), TensorOptions{DType::kI64, repeats.device()});
      return searchsorted(ends, places, false, true).to(repeats.dtype());
    });

LS_OP(repeat_interleave_places_out,
      const Tensor&(const Tensor&, std::optional<int64_t>, const Tensor&),
      "repeat_interleave.Tensor_out(Tensor repeats, *, SymInt? output_size=None, Tensor(a!) out) "
      "-> Tensor(a!)")
    .doc("repeat_interleave.Tensor, written into out.")
    .composite([](const Tensor& repeats, std::optional<int64_t> output_size,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_repeat_interleave_places(repeats, output_size));
    });

LS_OP(repeat_interleave_each,
      Tensor(const Tensor&, const Tensor&, std::optional<int64_t>, std::optional<int64_t>),
      "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? "
      "output_size=None) -> Tensor")
    .doc("Each slice along a dimension repeated as many times as its element of repeats says.")
    .composite([](const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                  std::optional<int64_t> output_size) {
      const Tensor input = dim && self.dim() > 0 ? self : self.reshape({self.numel()});
      const int64_t d = wrap_dim("repeat_interleave", dim.value_or(0), input.dim());
      const bool one_for_all = repeats.dim() == 0 || (repeats.dim() == 1 && repeats.numel() == 1);
      LS_CHECK(one_for_all || (repeats.dim() == 1 && repeats.numel() == input.size(d)), ShapeError,
               "[repeat_interleave] expected one number for each of {} parts, or one for all, got "
               "repeats of shape {}.",
               input.size(d), repeats.shape());
      const Tensor each = one_for_all ? repeats.reshape({1}).expand({input.size(d)}) : repeats;
      return index_select(input, d, op_repeat_interleave_places(each.to(DType::kI64), output_size));
    });

LS_OP(narrow, Tensor(const Tensor&, int64_t, int64_t, int64_t),
      "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)")
    .doc("self[start : start + length] along a dimension.")
    .composite([](const Tensor& self, int64_t dim, int64_t start, int64_t length) {
      LS_CHECK(self.dim() > 0, IndexError, "[narrow] a 0-d tensor has no dimension to narrow.");
      const int64_t size = self.size(dim);
      const int64_t first = start < 0 ? start + size : start;
      LS_CHECK(
          first >= 0 && first <= size && length >= 0 && length <= size - first, IndexError,
          "[narrow] start {} and length {} leave dimension {} of {}: expected a part of [0, {}).",
          start, length, dim, self.shape(), size);
      return self.slice(dim, first, first + length);
    });
Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return op_narrow(self, dim, start, length);
}

LS_OP(narrow_tensor, Tensor(const Tensor&, int64_t, const Tensor&, int64_t),
      "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)")
    .doc("narrow with the start in a 0-d tensor.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
      LS_CHECK(is_integral(start.dtype()), DTypeError, "[narrow] start must be an integer, got {}.",
               to_string(start));
      LS_CHECK(start.dim() == 0, ShapeError, "[narrow] start must be a 0-d tensor, got shape {}.",
               start.shape());
      return narrow(self, dim, start.item<int64_t>(), length);
    });

LS_OP(chunk, std::vector<Tensor>(const Tensor&, int64_t, int64_t),
      "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
    .doc("At most `chunks` parts of equal size along a dimension; the last may be smaller.")
    .composite([](const Tensor& self, int64_t chunks, int64_t dim) {
      LS_CHECK(chunks > 0, ShapeError, "[chunk] chunks must be positive, got {}.", chunks);
      LS_CHECK(self.dim() > 0, IndexError, "[chunk] a 0-d tensor cannot be cut.");
      const int64_t size = self.size(dim);
      // An empty dimension still gives as many parts as asked for.
      if (size == 0) {
        rules::check_part_count("chunk", chunks);
        return std::vector<Tensor>(static_cast<size_t>(chunks), self);
      }
      return self.split((size - 1) / chunks + 1, dim);
    });
std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  return op_chunk(self, chunks, dim);
}

}  // namespace lockstep
