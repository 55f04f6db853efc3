#include "core/ops/view/shape_rules.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep::rules {

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

}  // namespace

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

ViewSpec diagonal_of(std::string_view op, IntList sizes, IntList strides, int64_t offset,
                     int64_t dim1, int64_t dim2) {
  const int64_t rank = static_cast<int64_t>(sizes.size());
  const int64_t row = wrap_dim(op, dim1, rank);
  const int64_t column = wrap_dim(op, dim2, rank);
  LS_CHECK(row != column, ShapeError,
           "[{}] a diagonal needs two different dimensions, got {} and {} of {}.", op, dim1, dim2,
           to_string(sizes));
  ViewSpec spec;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == row || i == column) continue;
    spec.sizes.push_back(sizes[i]);
    spec.strides.push_back(strides[i]);
  }
  const int64_t length = offset >= 0
                             ? std::min(sizes[row], sizes[column] - std::min(offset, sizes[column]))
                             : std::min(sizes[row] + std::max(offset, -sizes[row]), sizes[column]);
  if (length > 0) spec.offset = offset >= 0 ? offset * strides[column] : -offset * strides[row];
  spec.sizes.push_back(length);
  // The sum overflows only for strides of dimensions of one element or none, where it has no
  // effect.
  int64_t stride = 0;
  spec.strides.push_back(__builtin_add_overflow(strides[row], strides[column], &stride) ? 1
                                                                                        : stride);
  return spec;
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

void check_part_count(std::string_view op, int64_t parts) {
  constexpr int64_t kMost = int64_t{1} << 24;
  LS_CHECK(
      parts <= kMost, ShapeError,
      "[{}] too many parts: expected at most {} tensors, got {}. Cut the dimension into larger "
      "parts.",
      op, kMost, parts);
}

}  // namespace lockstep::rules
