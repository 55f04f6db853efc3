#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>

#include "core/tensor/tensor.h"

namespace lockstep {

// Subscripts with the meaning that they have in Python: `x[i]`, and `x.index({Slice(1, 4), None,
// Ellipsis, mask, indices})` for `x[1:4, None, ..., mask, indices]`. What uses numbers, slices,
// None and Ellipsis alone is a view; tensors gather (core/ops/index/advanced_index.h), and their
// places follow NumPy's rule: the dimensions that they index stay where they are if they are
// neighbours, else they come first. x[i] of a 0-d integer tensor i, too, is a view; it waits for
// i's device.

/// A new dimension of size 1; in a Slice, no bound.
struct NoneIndex {
  constexpr operator std::optional<int64_t>() const { return std::nullopt; }
};
inline constexpr NoneIndex None{};
/// All dimensions that no other index is about.
struct EllipsisIndex {};
inline constexpr EllipsisIndex Ellipsis{};

/// `start:stop:step`. Negative numbers count from the end, and bounds beyond the ends are cut;
/// `step` is at least 1.
struct Slice {
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  int64_t step = 1;

  constexpr Slice(std::optional<int64_t> start = std::nullopt,
                  std::optional<int64_t> stop = std::nullopt, int64_t step = 1)
      : start(start), stop(stop), step(step) {}
};

/// One subscript: a number, Slice, None, Ellipsis, bool, or a tensor of integers or bools.
class TensorIndex {
 public:
  enum class Kind : uint8_t { kNone, kEllipsis, kSlice, kBool, kNumber, kTensor };

  TensorIndex(NoneIndex) : kind_(Kind::kNone) {}
  TensorIndex(EllipsisIndex) : kind_(Kind::kEllipsis) {}
  TensorIndex(const Slice& slice) : kind_(Kind::kSlice), slice_(slice) {}
  TensorIndex(std::same_as<bool> auto flag) : kind_(Kind::kBool), number_(flag) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) TensorIndex(T number)
      : kind_(Kind::kNumber), number_(static_cast<int64_t>(number)) {}
  TensorIndex(const Tensor& tensor) : kind_(Kind::kTensor), tensor_(tensor) {}

  Kind kind() const noexcept { return kind_; }
  const Slice& slice() const noexcept { return slice_; }
  int64_t number() const noexcept { return number_; }
  const Tensor& tensor() const noexcept { return tensor_; }

 private:
  Kind kind_;
  int64_t number_ = 0;
  Slice slice_;
  Tensor tensor_;
};

// Tensor::index throws IndexError for more indices than dimensions, a second Ellipsis, and an index
// out of range. Tensor::index_put_ writes `values`, broadcast to what index() would give and cast
// to the tensor's dtype; of several values for one element the last one stays.

/// The rows of a tensor, x[0], x[1], ..., which are views, for `for (const Tensor& row : x)`.
class RowIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Tensor;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Tensor;

  RowIterator() = default;
  RowIterator(const Tensor& of, int64_t row) : of_(&of), row_(row) {}
  Tensor operator*() const { return (*of_)[row_]; }
  RowIterator& operator++() {
    ++row_;
    return *this;
  }
  RowIterator operator++(int) { return {*of_, row_++}; }
  bool operator==(const RowIterator& other) const { return row_ == other.row_; }

 private:
  const Tensor* of_ = nullptr;
  int64_t row_ = 0;
};
/// Throws ShapeError for a 0-d tensor.
RowIterator begin(const Tensor& tensor);
RowIterator end(const Tensor& tensor);

}  // namespace lockstep
