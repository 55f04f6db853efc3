#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/lifetime_bound.h"
#include "core/base/small_vector.h"

namespace lockstep {

/// Sizes, strides or dimension numbers of one tensor: inline up to rank 5.
using Dims = SmallVector<int64_t, 5>;

/// A borrowed list of integers, the type of every `int[]` argument. Its source must outlive the
/// call, which holds for arguments written in place (`{2, 3}`). What is named and kept is a Dims or
/// a std::vector<int64_t>.
class IntList : public std::span<const int64_t> {
 public:
  using std::span<const int64_t>::span;
  IntList(std::span<const int64_t> s) : span(s) {}
  IntList(const Dims& d LS_LIFETIME_BOUND) : span(d.data(), d.size()) {}
  IntList(const std::vector<int64_t>& v LS_LIFETIME_BOUND) : span(v.data(), v.size()) {}
  IntList(std::initializer_list<int64_t> l LS_LIFETIME_BOUND) : span(l.begin(), l.size()) {}
};

/// The type of an `int[]?` parameter: nothing, a list, or one number for a list of one. Borrowed,
/// as IntList is.
class OptionalIntList {
 public:
  OptionalIntList(std::nullopt_t = std::nullopt) noexcept {}
  OptionalIntList(IntList list) noexcept : list_(list) {}
  OptionalIntList(const Dims& d LS_LIFETIME_BOUND) : list_(d) {}
  OptionalIntList(const std::vector<int64_t>& v LS_LIFETIME_BOUND) : list_(v) {}
  OptionalIntList(std::initializer_list<int64_t> l LS_LIFETIME_BOUND) : list_(l) {}
  OptionalIntList(const std::optional<IntList>& list) noexcept : list_(list) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) OptionalIntList(T one) : one_(static_cast<int64_t>(one)) {}

  /// Valid while this lives, and what it was made from.
  operator std::optional<IntList>() const noexcept LS_LIFETIME_BOUND {
    return one_ ? IntList(&*one_, 1) : list_;
  }

 private:
  std::optional<IntList> list_;
  std::optional<int64_t> one_;
};

/// A borrowed list of numbers, the type of every `float[]` argument.
class DoubleList : public std::span<const double> {
 public:
  using std::span<const double>::span;
  DoubleList(std::span<const double> s) : span(s) {}
  DoubleList(std::initializer_list<double> l LS_LIFETIME_BOUND) : span(l.begin(), l.size()) {}
};

/// The type of a `bool[N]` argument: at most 32 flags, by value.
struct BoolList {
  uint32_t bits = 0;
  uint32_t count = 0;

  BoolList() = default;
  BoolList(std::initializer_list<bool> flags) {
    for (bool flag : flags) push_back(flag);
  }
  void push_back(bool flag) { bits |= static_cast<uint32_t>(flag) << count++; }
  bool operator[](size_t i) const { return ((bits >> i) & 1) != 0; }
  size_t size() const { return count; }
};

inline Dims to_dims(IntList list) { return Dims(std::span<const int64_t>(list)); }
inline bool same(IntList a, IntList b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}
/// "[2, 3]"
std::string to_string(IntList list);
inline std::string to_string(const Dims& dims) { return to_string(IntList(dims)); }

/// Product of the sizes. Throws ShapeError if a size is negative or the product overflows int64.
int64_t count_elements(IntList sizes);
/// Row-major strides.
Dims contiguous_strides(IntList sizes);
/// True when the elements are laid out row by row without gaps. Dimensions of size 1 may have any
/// stride.
bool is_contiguous(IntList sizes, IntList strides);
/// True when no two elements share an address and together they fill a range without gaps, in any
/// order of dimensions.
bool is_dense(IntList sizes, IntList strides);
/// True when two index tuples may refer to the same address (in an expanded tensor, say).
bool may_self_overlap(IntList sizes, IntList strides);

/// Returns `dim`, or `dim + rank` if it is negative (-1 means the last dimension). Throws
/// IndexError naming `op` if out of range. A 0-d tensor accepts -1 and 0.
int64_t wrap_dim(std::string_view op, int64_t dim, int64_t rank);
/// Wrapped dimension numbers as a bit mask; an empty list means all. Throws ShapeError if one
/// repeats.
uint64_t dim_mask(std::string_view op, IntList dims, int64_t rank);

/// The shape to which both operands broadcast. Throws ShapeError naming `op` and both shapes.
Dims broadcast(std::string_view op, IntList a, IntList b);
/// Strides that read a tensor of (sizes, strides) as `to`: 0 in broadcast dimensions.
Dims broadcast_strides(IntList sizes, IntList strides, IntList to);
/// Sets `out` to the strides under which (sizes, strides) reads as `to` without a copy; returns
/// false if there are none. A 0-d `to` always works.
bool view_strides(IntList sizes, IntList strides, IntList to, Dims& out);
/// Replaces one -1 in `wanted` so that the product is `numel`. Throws ShapeError naming `op`.
Dims infer_size(std::string_view op, IntList wanted, int64_t numel);

}  // namespace lockstep
