#include "core/ops/view/rearrange.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/shape_rules.h"
#include "core/ops/view/view.h"
#include "core/tensor/memory_format.h"

namespace lockstep {

namespace {

/// Rolls self by `shift` along one dimension.
Tensor rolled(const Tensor& self, int64_t shift, int64_t dim) {
  const int64_t size = self.size(dim);
  const int64_t back = shift % size;
  const int64_t start = back > 0 ? size - back : -back;  // index of the first element of the result
  if (start == 0) return self;
  return cat({self.slice(dim, start, size), self.slice(dim, 0, start)}, dim);
}

std::vector<Tensor> sliced(const Tensor& self, IntList lengths, int64_t dim) {
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (const int64_t length : lengths) {
    parts.push_back(self.slice(dim, first, first + length));
    first += length;
  }
  return parts;
}

void write_parts(std::string_view op, const MutableTensorList& out,
                 const std::vector<Tensor>& parts) {
  LS_CHECK(out.size() == parts.size(), ShapeError,
           "[{}] out= must have a tensor for each part: expected {}, got {}.", op, parts.size(),
           out.size());
  for (size_t i = 0; i < parts.size(); ++i) clone_out(out[i], parts[i]);
}

/// Lengths of the parts when `size` elements are split into parts of `part`.
Dims part_lengths(int64_t size, int64_t part) {
  Dims lengths;
  for (int64_t first = 0; first < size || lengths.empty(); first += std::max<int64_t>(part, 1)) {
    lengths.push_back(std::min(part, size - first));
  }
  return lengths;
}

/// Sizes of the leading dimensions of images [..., channels, height, width]. Checks the arguments.
Dims leading_sizes(std::string_view op, const Tensor& self, int64_t factor) {
  LS_CHECK(self.dim() >= 3, ShapeError,
           "[{}] expected an image [..., channels, height, width], got shape {}.", op,
           self.shape());
  LS_CHECK(factor > 0, ShapeError, "[{}] the factor must be positive, got {}.", op, factor);
  return to_dims(self.sizes().subspan(0, static_cast<size_t>(self.dim() - 3)));
}

/// A permutation that keeps `leading` dimensions and reorders those after them by `order`.
Dims behind(size_t leading, std::initializer_list<int64_t> order) {
  Dims dims;
  for (size_t i = 0; i < leading; ++i) dims.push_back(static_cast<int64_t>(i));
  for (const int64_t i : order) dims.push_back(static_cast<int64_t>(leading) + i);
  return dims;
}

Dims joined(Dims leading, std::initializer_list<int64_t> rest) {
  for (const int64_t size : rest) leading.push_back(size);
  return leading;
}

}  // namespace

LS_OP(repeat, Tensor(const Tensor&, IntList), "repeat(Tensor self, SymInt[] repeats) -> Tensor")
    .doc("The tensor repeated along each dimension.")
    .composite([](const Tensor& self, IntList repeats) {
      const int64_t rank = static_cast<int64_t>(repeats.size());
      LS_CHECK(rank >= self.dim(), ShapeError,
               "[repeat] expected a number for each of {} dimensions or more, got {}.", self.dim(),
               to_string(repeats));
      Dims apart;     // sizes with a 1 inserted before each
      Dims expanded;  // the same with the repeats in place of the 1s
      Dims sizes;
      for (int64_t i = 0; i < rank; ++i) {
        LS_CHECK(repeats[i] >= 0, ShapeError, "[repeat] repeats must not be negative, got {}.",
                 to_string(repeats));
        const int64_t lead = rank - self.dim();
        const int64_t size = i < lead ? 1 : self.sizes()[i - lead];
        apart.push_back(1);
        apart.push_back(size);
        expanded.push_back(repeats[i]);
        expanded.push_back(size);
        int64_t whole = 0;
        LS_CHECK(!__builtin_mul_overflow(size, repeats[i], &whole), ShapeError,
                 "[repeat] {} repeated {} times has more elements than a 64-bit count can hold.",
                 self.shape(), to_string(repeats));
        sizes.push_back(whole);
      }
      return clone(self.reshape(apart).expand(expanded), MemoryFormat::kContiguous).view(sizes);
    });
Tensor repeat(const Tensor& self, IntList repeats) { return op_repeat(self, repeats); }

LS_OP(repeat_out, const Tensor&(const Tensor&, IntList, const Tensor&),
      "repeat.out(Tensor self, SymInt[] repeats, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("repeat, written into out.")
    .composite([](const Tensor& self, IntList repeats, const Tensor& out) -> const Tensor& {
      return clone_out(out, repeat(self, repeats));
    });

LS_OP(tile, Tensor(const Tensor&, IntList), "tile(Tensor self, SymInt[] dims) -> Tensor")
    .doc("repeat; where dims is short, leading dimensions are not repeated.")
    .composite([](const Tensor& self, IntList dims) {
      Dims repeats;
      for (int64_t i = static_cast<int64_t>(dims.size()); i < self.dim(); ++i) repeats.push_back(1);
      for (const int64_t count : dims) repeats.push_back(count);
      return repeat(self, repeats);
    });
Tensor tile(const Tensor& self, IntList dims) { return op_tile(self, dims); }

LS_OP(roll, Tensor(const Tensor&, IntList, IntList),
      "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor")
    .doc("Elements shifted along dimensions, wrapping around.")
    .composite([](const Tensor& self, IntList shifts, IntList dims) {
      LS_CHECK(!shifts.empty(), ShapeError, "[roll] expected at least one shift, got none.");
      LS_CHECK(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1), ShapeError,
               "[roll] expected a shift for each dimension, got shifts {} and dims {}.",
               to_string(shifts), to_string(dims));
      for (const int64_t dim : dims) {
        LS_CHECK(self.dim() > 0, IndexError, "[roll] a 0-d tensor has no dimension {}.", dim);
        wrap_dim("roll", dim, self.dim());
      }
      if (self.numel() == 0) return self.clone();
      Tensor result = dims.empty() ? rolled(self.flatten(), shifts[0], 0).view(self.sizes()) : self;
      for (size_t i = 0; i < dims.size(); ++i) result = rolled(result, shifts[i], dims[i]);
      return result.storage() == self.storage() ? result.clone() : result;
    });
Tensor roll(const Tensor& self, IntList shifts, IntList dims) {
  return op_roll(self, shifts, dims);
}

LS_OP(roll_out, const Tensor&(const Tensor&, IntList, IntList, const Tensor&),
      "roll.out(Tensor self, SymInt[1] shifts, int[1] dims=[], *, Tensor(a!) out) -> Tensor(a!)")
    .doc("roll, written into out.")
    .composite([](const Tensor& self, IntList shifts, IntList dims,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, roll(self, shifts, dims));
    });

LS_OP(diag_embed, Tensor(const Tensor&, int64_t, int64_t, int64_t),
      "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor")
    .doc("Zeros with self's last dimension on a diagonal.")
    .composite([](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
      LS_CHECK(self.dim() > 0, IndexError,
               "[diag_embed] a 0-d tensor has no last dimension. Use unsqueeze(0).");
      const int64_t rank = self.dim() + 1;
      const int64_t row = wrap_dim("diag_embed", dim1, rank);
      const int64_t column = wrap_dim("diag_embed", dim2, rank);
      LS_CHECK(row != column, ShapeError,
               "[diag_embed] a diagonal needs two different dimensions, got {} and {}.", dim1,
               dim2);
      const CheckedInt none("diag_embed", 0);
      const int64_t side =
          (offset < 0 ? none - offset + self.size(-1) : none + offset + self.size(-1)).value();
      Dims sizes = to_dims(self.sizes());
      sizes.erase(self.dim() - 1);
      sizes.insert(std::min(row, column), side);
      sizes.insert(std::max(row, column), side);
      return diagonal_scatter(zeros(sizes, self.options()), self, offset, row, column);
    });
Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return op_diag_embed(self, offset, dim1, dim2);
}

LS_OP(diag_embed_out, const Tensor&(const Tensor&, int64_t, int64_t, int64_t, const Tensor&),
      "diag_embed.out(Tensor self, int offset=0, int dim1=-2, int dim2=-1, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("diag_embed, written into out.")
    .composite([](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, diag_embed(self, offset, dim1, dim2));
    });

LS_OP(pixel_shuffle, Tensor(const Tensor&, int64_t),
      "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor")
    .doc("[..., C r^2, H, W] -> [..., C, H r, W r].")
    .composite([](const Tensor& self, int64_t r) {
      const Dims lead = leading_sizes("pixel_shuffle", self, r);
      const int64_t channels = self.size(-3), height = self.size(-2), width = self.size(-1);
      const CheckedInt factor("pixel_shuffle", r);
      const int64_t square = (factor * r).value();
      LS_CHECK(
          channels % square == 0, ShapeError,
          "[pixel_shuffle] the channels must be a multiple of upscale_factor^2 = {}, got shape "
          "{}.",
          square, self.shape());
      const int64_t c = channels / square;
      const int64_t high = (factor * height).value(), wide = (factor * width).value();
      const Tensor parts = self.reshape(joined(lead, {c, r, r, height, width}));
      if (suggests_channels_last(self.sizes(), self.strides()) && lead.size() == 1) {
        return clone(parts.permute({0, 4, 2, 5, 3, 1}), MemoryFormat::kContiguous)
            .view({lead[0], high, wide, c})
            .permute({0, 3, 1, 2});
      }
      return clone(parts.permute(behind(lead.size(), {0, 3, 1, 4, 2})), MemoryFormat::kContiguous)
          .view(joined(lead, {c, high, wide}));
    });
Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor) {
  return op_pixel_shuffle(self, upscale_factor);
}

LS_OP(pixel_shuffle_out, const Tensor&(const Tensor&, int64_t, const Tensor&),
      "pixel_shuffle.out(Tensor self, int upscale_factor, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("pixel_shuffle, written into out.")
    .composite([](const Tensor& self, int64_t upscale_factor, const Tensor& out) -> const Tensor& {
      return clone_out(out, pixel_shuffle(self, upscale_factor));
    });

LS_OP(pixel_unshuffle, Tensor(const Tensor&, int64_t),
      "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor")
    .doc("[..., C, H r, W r] -> [..., C r^2, H, W].")
    .composite([](const Tensor& self, int64_t r) {
      const Dims lead = leading_sizes("pixel_unshuffle", self, r);
      const int64_t c = self.size(-3), height = self.size(-2), width = self.size(-1);
      LS_CHECK(height % r == 0 && width % r == 0, ShapeError,
               "[pixel_unshuffle] height and width must be multiples of downscale_factor {}, got "
               "shape {}.",
               r, self.shape());
      const int64_t parts_of_all = (CheckedInt("pixel_unshuffle", r) * r * c).value();
      const Tensor parts = self.reshape(joined(lead, {c, height / r, r, width / r, r}));
      if (suggests_channels_last(self.sizes(), self.strides()) && lead.size() == 1) {
        return clone(parts.permute({0, 2, 4, 1, 3, 5}), MemoryFormat::kContiguous)
            .view({lead[0], height / r, width / r, parts_of_all})
            .permute({0, 3, 1, 2});
      }
      return clone(parts.permute(behind(lead.size(), {0, 2, 4, 1, 3})), MemoryFormat::kContiguous)
          .view(joined(lead, {parts_of_all, height / r, width / r}));
    });
Tensor pixel_unshuffle(const Tensor& self, int64_t downscale_factor) {
  return op_pixel_unshuffle(self, downscale_factor);
}

LS_OP(pixel_unshuffle_out, const Tensor&(const Tensor&, int64_t, const Tensor&),
      "pixel_unshuffle.out(Tensor self, int downscale_factor, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("pixel_unshuffle, written into out.")
    .composite([](const Tensor& self, int64_t downscale_factor,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, pixel_unshuffle(self, downscale_factor));
    });

LS_OP(unsafe_split_with_sizes, std::vector<Tensor>(const Tensor&, IntList, int64_t),
      "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
    .doc("split_with_sizes into parts that may each be changed in place.")
    .composite([](const Tensor& self, IntList split_sizes, int64_t dim) {
      split_with_sizes(self.detach(), split_sizes, dim);  // throws if the arguments are invalid
      return sliced(self, split_sizes, dim);
    });
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntList split_sizes, int64_t dim) {
  return op_unsafe_split_with_sizes(self, split_sizes, dim);
}

LS_OP(unsafe_split_with_sizes_out, void(const Tensor&, IntList, int64_t, MutableTensorList),
      "unsafe_split_with_sizes.out(Tensor self, SymInt[] split_sizes, int dim=0, *, Tensor(a!)[] "
      "out) -> ()")
    .doc("unsafe_split_with_sizes, each part written into a tensor of out.")
    .composite([](const Tensor& self, IntList split_sizes, int64_t dim, MutableTensorList out) {
      write_parts("unsafe_split_with_sizes", out, unsafe_split_with_sizes(self, split_sizes, dim));
    });

LS_OP(unsafe_split, std::vector<Tensor>(const Tensor&, int64_t, int64_t),
      "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")
    .doc("split into parts that may each be changed in place.")
    .composite([](const Tensor& self, int64_t split_size, int64_t dim) {
      LS_CHECK(self.dim() > 0, IndexError, "[unsafe_split] a 0-d tensor cannot be split.");
      LS_CHECK(split_size > 0 || (split_size == 0 && self.size(dim) == 0), ShapeError,
               "[unsafe_split] split_size must be positive, got {}.", split_size);
      rules::check_part_count("unsafe_split", self.size(dim) / std::max<int64_t>(split_size, 1));
      return sliced(self, part_lengths(self.size(dim), split_size), dim);
    });
std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return op_unsafe_split(self, split_size, dim);
}

LS_OP(unsafe_split_out, void(const Tensor&, int64_t, int64_t, MutableTensorList),
      "unsafe_split.Tensor_out(Tensor self, SymInt split_size, int dim=0, *, Tensor(a!)[] out) -> "
      "()")
    .doc("unsafe_split, each part written into a tensor of out.")
    .composite([](const Tensor& self, int64_t split_size, int64_t dim, MutableTensorList out) {
      write_parts("unsafe_split", out, unsafe_split(self, split_size, dim));
    });

LS_OP(unsafe_chunk, std::vector<Tensor>(const Tensor&, int64_t, int64_t),
      "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")
    .doc("chunk into parts that may each be changed in place.")
    .composite([](const Tensor& self, int64_t chunks, int64_t dim) {
      LS_CHECK(chunks > 0, ShapeError, "[unsafe_chunk] chunks must be positive, got {}.", chunks);
      LS_CHECK(self.dim() > 0, IndexError, "[unsafe_chunk] a 0-d tensor cannot be cut.");
      const int64_t size = self.size(dim);
      // An empty dimension still gives as many parts as asked for.
      if (size == 0) rules::check_part_count("unsafe_chunk", chunks);
      const Dims lengths = size == 0 ? Dims(static_cast<size_t>(chunks), 0)
                                     : part_lengths(size, (size - 1) / chunks + 1);
      return sliced(self, lengths, dim);
    });
std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  return op_unsafe_chunk(self, chunks, dim);
}

LS_OP(one_hot, Tensor(const Tensor&, int64_t), "one_hot(Tensor self, int num_classes=-1) -> Tensor")
    .doc("One-hot encoding: 1 at the class of each element, else 0, along a new last dimension.")
    .composite([](const Tensor& self, int64_t num_classes) {
      LS_CHECK(self.dtype() == DType::kI64, DTypeError,
               "[one_hot] classes must be int64, got {}. Cast them with to(DType::kI64).",
               to_string(self.dtype()));
      LS_CHECK(num_classes > 0 || num_classes == -1 || (num_classes == 0 && self.numel() == 0),
               ShapeError, "[one_hot] num_classes must be positive, or -1, got {}.", num_classes);
      LS_CHECK(self.numel() > 0 || num_classes > 0, ShapeError,
               "[one_hot] no elements say how many classes there are. Give num_classes.");
      int64_t classes = num_classes;
      // On meta elements have no values to check.
      if (self.numel() > 0 && (self.device() != kMeta || num_classes == -1)) {
        const int64_t least = min(self).item<int64_t>();
        const int64_t most = max(self).item<int64_t>();
        if (num_classes == -1) classes = (CheckedInt("one_hot", most) + 1).value();
        LS_CHECK(least >= 0 && most < classes, IndexError,
                 "[one_hot] class out of range: expected classes in [0, {}), got {}.", classes,
                 least < 0 ? least : most);
      }
      const Tensor each = arange(Scalar(classes), TensorOptions{DType::kI64, self.device()});
      return eq(self.contiguous().unsqueeze(-1), each).to(DType::kI64);
    });
Tensor one_hot(const Tensor& self, int64_t num_classes) { return op_one_hot(self, num_classes); }

}  // namespace lockstep
