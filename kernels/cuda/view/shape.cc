#include <algorithm>

#include "core/dispatch/kernel.h"
#include "core/ops/view/shape_rules.h"
#include "kernels/cuda/factory/copy.h"

namespace lockstep::cuda {

namespace {

/// A part of a tensor, or the tensor with other strides. `sizes` and `strides` must outlive it.
template <class Arg>
Arg part_of(const Arg& whole, int64_t offset, const Dims& sizes, const Dims& strides) {
  Arg part = whole;
  part.address =
      static_cast<char*>(whole.address) + offset * static_cast<int64_t>(size_of(whole.dtype));
  part.size_data = sizes.data();
  part.stride_data = strides.data();
  part.rank = static_cast<int32_t>(sizes.size());
  part.numel = count_elements(sizes);
  part.contiguous = is_contiguous(sizes, strides);
  return part;
}

void cat(const Out& out, InList tensors, int64_t dim) {
  const int d = static_cast<int>(wrap_dim("cat", dim, out.rank));
  const Dims strides = to_dims(out.strides());
  int64_t place = 0;  // start of the next part, along `dim`
  for (const In& part : tensors) {
    if (part.numel == 0) continue;
    const Dims sizes = to_dims(part.sizes());
    copy_elements(part_of(out, place * out.stride(d), sizes, strides), part);
    place += part.size(d);
  }
}

void slice_scatter(const Out& out, const In& self, const In& source, int64_t dim,
                   std::optional<int64_t> start, std::optional<int64_t>, int64_t step) {
  copy_elements(out, self);
  if (source.numel == 0) return;
  const int d = static_cast<int>(wrap_dim("slice_scatter", dim, out.rank));
  const int64_t size = out.size(d);
  const int64_t from = start.value_or(0);
  const int64_t first = std::clamp<int64_t>(from < 0 ? from + size : from, 0, size);
  const Dims sizes = to_dims(source.sizes());
  Dims strides = to_dims(out.strides());
  strides[static_cast<size_t>(d)] *= step;
  copy_elements(part_of(out, first * out.stride(d), sizes, strides), source);
}

void diagonal_scatter(const Out& out, const In& self, const In& src, int64_t offset, int64_t dim1,
                      int64_t dim2) {
  copy_elements(out, self);
  if (src.numel == 0) return;
  const ViewSpec place =
      rules::diagonal_of("diagonal_scatter", out.sizes(), out.strides(), offset, dim1, dim2);
  const Dims sizes = to_dims(src.sizes());
  const Dims strides = to_dims(place.strides);
  copy_elements(part_of(out, place.offset, sizes, strides), src);
}

void flip(const Out& out, const In& self, IntList dims) {
  if (self.numel == 0) return;
  const Dims sizes = to_dims(self.sizes());
  Dims strides = to_dims(self.strides());
  int64_t offset = 0;  // offset of the first element in the result's order
  for (const int64_t dim : dims) {
    if (self.rank == 0) break;
    const int d = static_cast<int>(wrap_dim("flip", dim, self.rank));
    offset += (self.size(d) - 1) * self.stride(d);
    strides[static_cast<size_t>(d)] = -self.stride(d);
  }
  copy_elements(out, part_of(self, offset, sizes, strides));
}

}  // namespace

LS_KERNEL(CUDA, "cat", cat, Strides::kAny);
LS_KERNEL(CUDA, "slice_scatter", slice_scatter, Strides::kAny);
LS_KERNEL(CUDA, "diagonal_scatter", diagonal_scatter, Strides::kAny);
LS_KERNEL(CUDA, "flip", flip, Strides::kAny);

}  // namespace lockstep::cuda
