#include "core/ops/index/index_sets.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/sort.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

using DTypeOption = std::optional<DType>;
using LayoutOption = std::optional<Layout>;
using DeviceOption = std::optional<Device>;
using Flag = std::optional<bool>;

/// The number of ways to choose k of n.
int64_t choices(int64_t n, int64_t k) {
  if (k > n) return 0;
  CheckedInt count("combinations", 1);
  for (int64_t i = 1; i <= std::min(k, n - k); ++i) {
    count *= n - i + 1;
    count = CheckedInt("combinations", count.value() / i);
  }
  return count.value();
}

/// The positions of each combination of r of n elements in lexicographic order: [count, r].
Tensor chosen(int64_t n, int64_t r, bool with_replacement, Device device) {
  int64_t count = 0;
  if (with_replacement) {
    // As many as ways to choose r of n + r - 1 without replacement.
    count = n == 0 ? 0 : choices((CheckedInt("combinations", n) + r - 1).value(), r);
  } else {
    count = choices(n, r);
  }
  if (device == kMeta) return empty({count, r}, {DType::kI64, device});
  const Tensor result = empty({count, r}, {DType::kI64, kCPU});
  if (result.numel() == 0) return result.to(device);
  int64_t* row = result.data<int64_t>();
  for (int64_t i = 0; i < r; ++i) row[i] = with_replacement ? 0 : i;
  for (int64_t k = 1; k < count; ++k) {
    int64_t* next = std::copy_n(row, r, row + r) - r;
    int64_t i = r - 1;  // the last position that can move on
    while (next[i] == (with_replacement ? n - 1 : n - r + i)) --i;
    const int64_t moved = ++next[i];
    for (int64_t j = i + 1; j < r; ++j) next[j] = with_replacement ? moved : next[j - 1] + 1;
    row = next;
  }
  return result.to(device);
}

/// The size of the lower triangle, whose row i has its first i + offset + 1 elements.
int64_t triangle_size(std::string_view op, int64_t rows, int64_t columns, int64_t offset) {
  if (rows == 0 || columns == 0) return 0;
  const int64_t o = std::clamp(offset, -rows, columns);
  const int64_t skipped = std::max<int64_t>(0, -o);
  const int64_t whole = std::clamp<int64_t>(rows - std::max(columns - 1 - o, skipped), 0, rows);
  const int64_t partial = rows - skipped - whole;
  if (partial == 0) return (CheckedInt(op, whole) * columns).value();
  const int64_t first = skipped + o + 1;  // the length of the first row that is not empty
  const CheckedInt sum = CheckedInt(op, first) * 2 + partial - 1;
  const CheckedInt twice = sum * partial;
  return (CheckedInt(op, whole) * columns + twice.value() / 2).value();
}

/// Rows and columns [2, count] of the elements of a triangle in row-major order. Row i has
/// `lengths[i]` of them, from column `begins[i]` on.
Tensor triangle(const Tensor& lengths, const Tensor& begins, int64_t count, DType dtype) {
  const TensorOptions options = lengths.options();
  if (count == 0) return zeros({2, 0}, {dtype, lengths.device()});
  const Tensor ends = cumsum(lengths, 0);
  const Tensor place = arange(Scalar(count), options);
  const Tensor row = searchsorted(ends, place, false, true);
  const Tensor shift = begins - (ends - lengths);  // from the place in order to the column
  return stack({row, place + index_select(shift, 0, row)}, 0).to(dtype);
}

void check_triangle(std::string_view op, int64_t rows, int64_t columns, DType dtype) {
  LS_CHECK(rows >= 0 && columns >= 0, ShapeError,
           "[{}] sizes must not be negative, got {} rows and {} columns.", op, rows, columns);
  LS_CHECK(dtype != DType::kBool, DTypeError, "[{}] expected a numeric dtype, got bool.", op);
  (CheckedInt(op, rows) * columns).value();  // throws unless every count of elements fits
}

/// i + offset for each row i, limited to [0, columns].
Tensor edges(int64_t rows, int64_t columns, int64_t offset, DeviceOption device) {
  TensorOptions options;
  options.dtype = DType::kI64;
  options.device = device;
  const int64_t o = std::clamp(offset, -rows, columns);
  return clamp(arange(Scalar(rows), options) + o, Scalar(0), Scalar(columns));
}

}  // namespace

LS_OP(combinations, Tensor(const Tensor&, int64_t, bool),
      "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor")
    .doc("All combinations of r elements of a vector, in the order of their positions.")
    .composite([](const Tensor& self, int64_t r, bool with_replacement) {
      LS_CHECK(self.dim() == 1, ShapeError, "[combinations] expected a vector, got shape {}.",
               self.shape());
      LS_CHECK(r >= 0, Error, "[combinations] r must not be negative, got {}.", r);
      if (r == 0) return empty({0}, self.options());
      const Tensor places = chosen(self.numel(), r, with_replacement, self.device());
      return index_select(self, 0, places.flatten()).reshape(places.sizes());
    });
Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  return op_combinations(self, r, with_replacement);
}

LS_OP(tril_indices,
      Tensor(int64_t, int64_t, int64_t, DTypeOption, LayoutOption, DeviceOption, Flag),
      "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("Rows and columns of the elements of a lower triangle, in row-major order.")
    .composite([](int64_t row, int64_t col, int64_t offset, DTypeOption dtype, LayoutOption,
                  DeviceOption device, Flag) {
      constexpr std::string_view kName = "tril_indices";
      const DType result = dtype.value_or(DType::kI64);
      check_triangle(kName, row, col, result);
      const int64_t count = triangle_size(kName, row, col, offset);
      const int64_t after = offset < col ? offset + 1 : col;  // past the last column of row 0
      const Tensor lengths = edges(row, col, after, device);
      return triangle(lengths, zeros_like(lengths), count, result);
    });
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, TensorOptions options) {
  return op_tril_indices(row, col, offset, options.dtype.value_or(DType::kI64), std::nullopt,
                         options.device, std::nullopt);
}

LS_OP(triu_indices,
      Tensor(int64_t, int64_t, int64_t, DTypeOption, LayoutOption, DeviceOption, Flag),
      "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("Rows and columns of the elements of an upper triangle, in row-major order.")
    .composite([](int64_t row, int64_t col, int64_t offset, DTypeOption dtype, LayoutOption,
                  DeviceOption device, Flag) {
      constexpr std::string_view kName = "triu_indices";
      const DType result = dtype.value_or(DType::kI64);
      check_triangle(kName, row, col, result);
      const int64_t below = triangle_size(kName, row, col, std::max(offset, -row) - 1);
      const int64_t count = row * col - below;
      const Tensor begins = edges(row, col, offset, device);
      return triangle(rsub(begins, col), begins, count, result);
    });
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, TensorOptions options) {
  return op_triu_indices(row, col, offset, options.dtype.value_or(DType::kI64), std::nullopt,
                         options.device, std::nullopt);
}

}  // namespace lockstep
