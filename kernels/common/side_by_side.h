#pragma once

#include "core/tensor/kernel_arguments.h"

namespace lockstep {

/// Row-major matrices [rows_i, columns] as one matrix of all their rows.
class JoinedRows {
 public:
  explicit JoinedRows(InList parts) {
    sizes_[1] = strides_[0] = parts[0].size(1);
    for (const In& part : parts) {
      sizes_[0] += part.size(0);
      // A part without elements may have no address.
      if (matrix_.address == nullptr && part.numel > 0) matrix_.address = part.address;
    }
    matrix_.size_data = sizes_;
    matrix_.stride_data = strides_;
    matrix_.numel = sizes_[0] * sizes_[1];
    matrix_.rank = 2;
    matrix_.dtype = parts[0].dtype;
    matrix_.contiguous = true;
  }
  JoinedRows(const JoinedRows&) = delete;
  JoinedRows& operator=(const JoinedRows&) = delete;

  /// Whether each part starts where the one before ends, so that `matrix` is in place.
  static bool lie_side_by_side(InList parts) {
    const std::byte* end = nullptr;
    for (const In& part : parts) {
      if (part.numel == 0) continue;
      const auto* begin = static_cast<const std::byte*>(part.address);
      if (end != nullptr && begin != end) return false;
      end = begin + bytes_of(part);
    }
    return true;
  }
  static size_t bytes_of(const TensorArg& tensor) {
    return static_cast<size_t>(tensor.numel) * size_of(tensor.dtype);
  }

  /// The matrix is at `address`, to which the parts were copied.
  void move_to(void* address) { matrix_.address = address; }
  const In& matrix() const { return matrix_; }

 private:
  int64_t sizes_[2] = {0, 0};
  int64_t strides_[2] = {0, 1};
  In matrix_;
};

}  // namespace lockstep
