#include "core/ops/view/shape_rules.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep::rules {

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

void check_part_count(std::string_view op, int64_t parts) {
  constexpr int64_t kMost = int64_t{1} << 24;
  LS_CHECK(
      parts <= kMost, ShapeError,
      "[{}] too many parts: expected at most {} tensors, got {}. Cut the dimension into larger "
      "parts.",
      op, kMost, parts);
}

}  // namespace lockstep::rules
