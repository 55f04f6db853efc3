#pragma once

#include <algorithm>
#include <cstring>

#include "core/tensor/kernel_arguments.h"
#include "kernels/cpu/convert.h"

namespace lockstep::cpu {

/// Reads a [batch, heads, rows, width] argument of dtype f32, bf16 or f16 with any strides into
/// dense rows of f32, or of bf16 where the argument has that dtype.
class HeadReader {
 public:
  HeadReader(const In& in, ComputeLane lane)
      : data_(static_cast<const std::byte*>(in.address)),
        width_(in.size(3)),
        element_(static_cast<int64_t>(size_of(in.dtype))),
        lane_(size_of(lane)),
        batch_stride_(in.stride(0) * element_),
        head_stride_(in.stride(1) * element_),
        row_stride_(in.stride(2) * element_),
        column_stride_(width_ == 1 ? element_ : in.stride(3) * element_),
        load_(load_function(lane, in.dtype)),
        copies_(is_stored_as(in.dtype, lane) && column_stride_ == element_) {}

  /// Writes rows [first, first + count) of one head to `to`, `ld` elements apart. The columns from
  /// the width to `ld`, and the rows from `count` to `rows`, become 0.
  void read(int64_t batch, int64_t head, int64_t first, int64_t count, int64_t rows, void* to,
            int64_t ld) const {
    const std::byte* from =
        data_ + batch * batch_stride_ + head * head_stride_ + first * row_stride_;
    auto* row = static_cast<std::byte*>(to);
    const auto bytes = static_cast<size_t>(width_ * lane_);
    const auto padding = static_cast<size_t>((ld - width_) * lane_);
    for (int64_t r = 0; r < count; ++r, from += row_stride_, row += ld * lane_) {
      if (copies_) {
        std::memcpy(row, from, bytes);
      } else {
        load_(width_, row, from, column_stride_);
      }
      if (padding > 0) std::memset(row + bytes, 0, padding);
    }
    if (rows > count) std::memset(row, 0, static_cast<size_t>((rows - count) * ld * lane_));
  }

 private:
  const std::byte* data_;
  int64_t width_;
  int64_t element_;  ///< size of an element in bytes; strides are in bytes too
  int64_t lane_;     ///< size in bytes of an element that is written
  int64_t batch_stride_;
  int64_t head_stride_;
  int64_t row_stride_;
  int64_t column_stride_;
  LoadFunction load_;
  bool copies_;  ///< rows are copied as they are
};

/// Writes a [batch, heads, rows, width] result of dtype f32, bf16 or f16 with contiguous rows from
/// rows of f32.
class HeadWriter {
 public:
  explicit HeadWriter(const Out& out)
      : data_(static_cast<std::byte*>(out.address)),
        width_(out.size(3)),
        element_(static_cast<int64_t>(size_of(out.dtype))),
        batch_stride_(out.stride(0) * element_),
        head_stride_(out.stride(1) * element_),
        row_stride_(out.stride(2) * element_),
        store_(store_function(out.dtype, ComputeLane::kF32)),
        in_place_(out.dtype == DType::kF32) {}

  /// Writes rows [first, first + count) of one head from `from`, whose rows are `ld` elements
  /// apart.
  void write(int64_t batch, int64_t head, int64_t first, int64_t count, const float* from,
             int64_t ld) const {
    std::byte* to = data_ + batch * batch_stride_ + head * head_stride_ + first * row_stride_;
    for (int64_t r = 0; r < count; ++r, to += row_stride_, from += ld) {
      store_(width_, to, element_, from);
    }
  }
  /// The rows of one head as f32, `row_stride()` elements apart; null if the result is not f32.
  float* rows(int64_t batch, int64_t head) const {
    return in_place_ ? reinterpret_cast<float*>(data_ + batch * batch_stride_ + head * head_stride_)
                     : nullptr;
  }
  int64_t row_stride() const { return row_stride_ / element_; }

 private:
  std::byte* data_;
  int64_t width_;
  int64_t element_;  ///< size of an element in bytes; strides are in bytes too
  int64_t batch_stride_;
  int64_t head_stride_;
  int64_t row_stride_;
  StoreFunction store_;
  bool in_place_;
};

}  // namespace lockstep::cpu
