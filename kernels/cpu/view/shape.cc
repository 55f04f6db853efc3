#include <algorithm>

#include "core/dispatch/kernel.h"
#include "core/ops/view/shape_rules.h"
#include "kernels/cpu/strided_copy.h"

namespace lockstep::cpu {

namespace {

std::byte* bytes_of(const TensorArg& tensor) { return static_cast<std::byte*>(tensor.address); }

CopyAxes axes_between(const TensorArg& to, const TensorArg& from) {
  CopyAxes axes;
  for (int i = 0; i < from.rank; ++i) axes.push_back({from.size(i), to.stride(i), from.stride(i)});
  return axes;
}

void cat(const Out& out, InList tensors, int64_t dim) {
  const size_t element = size_of(out.dtype);
  const int d = static_cast<int>(wrap_dim("cat", dim, out.rank));
  int64_t place = 0;  // start of the next part, along `dim`
  for (const In& part : tensors) {
    if (part.numel == 0) continue;
    strided_copy(bytes_of(out) + place * out.stride(d) * static_cast<int64_t>(element),
                 bytes_of(part), element, axes_between(out, part));
    place += part.size(d);
  }
}

void slice_scatter(const Out& out, const In& self, const In& source, int64_t dim,
                   std::optional<int64_t> start, std::optional<int64_t>, int64_t step) {
  const size_t element = size_of(out.dtype);
  strided_copy(bytes_of(out), bytes_of(self), element, axes_between(out, self));
  if (source.numel == 0) return;
  const int d = static_cast<int>(wrap_dim("slice_scatter", dim, out.rank));
  const int64_t size = out.size(d);
  const int64_t from = start.value_or(0);
  const int64_t first = std::clamp<int64_t>(from < 0 ? from + size : from, 0, size);
  CopyAxes axes = axes_between(out, source);
  axes[static_cast<size_t>(d)].to *= step;
  strided_copy(bytes_of(out) + first * out.stride(d) * static_cast<int64_t>(element),
               bytes_of(source), element, axes);
}

void diagonal_scatter(const Out& out, const In& self, const In& src, int64_t offset, int64_t dim1,
                      int64_t dim2) {
  const size_t element = size_of(out.dtype);
  strided_copy(bytes_of(out), bytes_of(self), element, axes_between(out, self));
  if (src.numel == 0) return;
  const ViewSpec place =
      rules::diagonal_of("diagonal_scatter", out.sizes(), out.strides(), offset, dim1, dim2);
  CopyAxes axes;
  for (int i = 0; i < src.rank; ++i) {
    axes.push_back({src.size(i), place.strides[static_cast<size_t>(i)], src.stride(i)});
  }
  strided_copy(bytes_of(out) + place.offset * static_cast<int64_t>(element), bytes_of(src), element,
               axes);
}

void flip(const Out& out, const In& self, IntList dims) {
  CopyAxes axes = axes_between(out, self);
  int64_t offset = 0;  // offset of the first element in the result's order
  if (self.numel == 0) return;
  for (const int64_t dim : dims) {
    if (self.rank == 0) break;
    const int d = static_cast<int>(wrap_dim("flip", dim, self.rank));
    offset += (self.size(d) - 1) * self.stride(d);
    axes[static_cast<size_t>(d)].from = -self.stride(d);
  }
  const size_t element = size_of(out.dtype);
  strided_copy(bytes_of(out), bytes_of(self) + offset * static_cast<int64_t>(element), element,
               axes);
}

}  // namespace

LS_KERNEL(CPU, "cat", cat, Strides::kAny);
LS_KERNEL(CPU, "slice_scatter", slice_scatter, Strides::kAny);
LS_KERNEL(CPU, "diagonal_scatter", diagonal_scatter, Strides::kAny);
LS_KERNEL(CPU, "flip", flip, Strides::kAny);

}  // namespace lockstep::cpu
