#pragma once

#include <algorithm>

#include "core/tensor/kernel_arguments.h"
#include "kernels/cpu/convert.h"

namespace lockstep::cpu {

/// A matrix of f32 rows, `ld` elements apart.
struct Rows {
  const float* data;
  int64_t ld;
};

/// Reads a [batch, heads, rows, width] argument of dtype f32, bf16 or f16 with any strides as f32:
/// in place if it is f32 with contiguous rows, else converted a few rows at a time.
class HeadReader {
 public:
  explicit HeadReader(const In& in)
      : data_(static_cast<const std::byte*>(in.address)),
        width_(in.size(3)),
        element_(static_cast<int64_t>(size_of(in.dtype))),
        batch_stride_(in.stride(0) * element_),
        head_stride_(in.stride(1) * element_),
        row_stride_(in.stride(2) * element_),
        column_stride_(in.stride(3) * element_) {
    const bool rows_apart = in.size(2) <= 1 || in.stride(2) >= width_;
    const bool in_place =
        in.dtype == DType::kF32 && rows_apart && (in.stride(3) == 1 || width_ == 1);
    if (!in_place) load_ = load_function(ComputeLane::kF32, in.dtype);
  }

  /// Number of scratch elements that `rows` needs for `count` rows.
  int64_t scratch(int64_t count) const { return load_ == nullptr ? 0 : count * width_; }
  /// Returns rows [first, first + count) of one head, valid as long as the argument and `scratch`.
  Rows rows(int64_t batch, int64_t head, int64_t first, int64_t count, float* scratch) const {
    const std::byte* from =
        data_ + batch * batch_stride_ + head * head_stride_ + first * row_stride_;
    // With a single row the row stride is arbitrary, but `ld` must be at least the width.
    if (load_ == nullptr) {
      return {reinterpret_cast<const float*>(from), std::max(row_stride_ / element_, width_)};
    }
    if (column_stride_ == element_ && row_stride_ == width_ * element_) {
      load_(count * width_, scratch, from, element_);
    } else {
      for (int64_t r = 0; r < count; ++r) {
        load_(width_, scratch + r * width_, from + r * row_stride_, column_stride_);
      }
    }
    return {scratch, width_};
  }

 private:
  const std::byte* data_;
  int64_t width_;
  int64_t element_;  ///< size in bytes; strides are in bytes too
  int64_t batch_stride_;
  int64_t head_stride_;
  int64_t row_stride_;
  int64_t column_stride_;
  LoadFunction load_ = nullptr;  ///< null: read in place
};

/// Writes a [batch, heads, rows, width] result of dtype f32, bf16 or f16 with contiguous rows that
/// is computed in f32: in place if it is f32, else in scratch that is then converted.
class HeadWriter {
 public:
  explicit HeadWriter(const Out& out)
      : data_(static_cast<std::byte*>(out.address)),
        width_(out.size(3)),
        element_(static_cast<int64_t>(size_of(out.dtype))),
        batch_stride_(out.stride(0) * element_),
        head_stride_(out.stride(1) * element_),
        row_stride_(std::max(out.stride(2), width_) * element_),
        store_(out.dtype == DType::kF32 ? nullptr : store_function(out.dtype, ComputeLane::kF32)) {}

  /// Number of scratch elements that `place` needs for `count` rows.
  int64_t scratch(int64_t count) const { return store_ == nullptr ? 0 : count * width_; }
  /// Returns where to compute the rows from `first` on, `ld()` elements apart.
  float* place(int64_t batch, int64_t head, int64_t first, float* scratch) const {
    return store_ == nullptr ? reinterpret_cast<float*>(address(batch, head, first)) : scratch;
  }
  int64_t ld() const { return store_ == nullptr ? row_stride_ / element_ : width_; }
  /// Converts rows computed at `place` into the result, if they are not in place.
  void finish(int64_t batch, int64_t head, int64_t first, int64_t count,
              const float* scratch) const {
    if (store_ == nullptr) return;
    std::byte* to = address(batch, head, first);
    for (int64_t r = 0; r < count; ++r, to += row_stride_, scratch += width_) {
      store_(width_, to, element_, scratch);
    }
  }

 private:
  std::byte* address(int64_t batch, int64_t head, int64_t row) const {
    return data_ + batch * batch_stride_ + head * head_stride_ + row * row_stride_;
  }

  std::byte* data_;
  int64_t width_;
  int64_t element_;  ///< size in bytes; strides are in bytes too
  int64_t batch_stride_;
  int64_t head_stride_;
  int64_t row_stride_;
  StoreFunction store_;  ///< null: computed in place
};

}  // namespace lockstep::cpu
