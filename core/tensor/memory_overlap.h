#pragma once

#include <cstdint>

#include "core/base/small_vector.h"
#include "core/tensor/kernel_arguments.h"

namespace lockstep {

/// The set of bytes that the elements of a strided tensor occupy: `begin` plus one multiple of each
/// of a few strides. Does not access the memory. A plain value.
class Footprint {
 public:
  /// The empty set.
  Footprint() = default;
  Footprint(const void* address, size_t bytes);
  /// The bytes of a defined tensor.
  explicit Footprint(const TensorArg& tensor);

  uintptr_t begin() const noexcept { return begin_; }
  uintptr_t end() const noexcept { return end_; }
  bool empty() const noexcept { return begin_ == end_; }
  /// Whether there are bytes between `begin` and `end` that belong to no element.
  bool has_gaps() const noexcept { return steps_.size() > 1; }

  friend bool operator==(const Footprint&, const Footprint&) = default;

 private:
  friend struct FootprintOverlap;

  /// `count` places, `stride` bytes apart.
  struct Steps {
    int64_t stride;
    int64_t count;

    int64_t reach() const { return stride * (count - 1); }
    friend bool operator==(const Steps&, const Steps&) = default;
  };

  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
  SmallVector<Steps, 4> steps_;  ///< by falling stride; the last has stride 1
};

enum class Overlap : uint8_t {
  kNo,       ///< no byte belongs to both
  kYes,      ///< some byte belongs to both
  kUnknown,  ///< not decided: too many combinations of strides
};
Overlap overlap(const Footprint& a, const Footprint& b);

}  // namespace lockstep
