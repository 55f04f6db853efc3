#include "core/tensor/memory_format.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep {

Dims channels_last_strides(IntList sizes) {
  count_elements(sizes);  // throws where the strides would overflow
  Dims strides(sizes.size(), 1);
  int64_t step = sizes[1];
  for (size_t i = sizes.size() - 1; i >= 2; --i) {
    strides[i] = step;
    step *= sizes[i];
  }
  strides[0] = step;
  return strides;
}

bool suggests_channels_last(IntList sizes, IntList strides) {
  const size_t rank = sizes.size();
  if ((rank != 4 && rank != 5) || strides[1] == 0) return false;
  int64_t least = 0;  // least stride that skips all elements of the dimensions so far
  const auto follows = [&](size_t d) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    least = strides[d] * std::max<int64_t>(sizes[d], 1);
    return true;
  };
  if (!follows(1)) return false;
  for (size_t d = rank - 1; d >= 2; --d) {
    if (!follows(d)) return false;
  }
  // A tensor of one channel and one spatial position has the same strides in both formats.
  return least != strides[1] && follows(0);
}

namespace {

/// Positive if dimension `a` lies outside `b`, negative if inside, 0 if no example tells.
int order(IntList sizes, std::span<const IntList> examples, size_t a, size_t b) {
  for (const IntList strides : examples) {
    if (strides[a] == 0 || strides[b] == 0) continue;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

}  // namespace

Dims dense_strides(IntList sizes, std::span<const IntList> examples) {
  const size_t rank = sizes.size();
  SmallVector<size_t, 5> inner_first;
  for (size_t i = 0; i < rank; ++i) inner_first.push_back(rank - 1 - i);
  // Insertion sort, since the order is partial: dimensions that compare as 0 keep their order.
  for (size_t i = 1; i < rank; ++i) {
    for (size_t moved = i, other = i; other-- > 0;) {
      const int compared = order(sizes, examples, inner_first[other], inner_first[moved]);
      if (compared < 0) break;
      if (compared > 0) {
        std::swap(inner_first[other], inner_first[moved]);
        moved = other;
      }
    }
  }
  Dims strides(rank, 1);
  int64_t step = 1;
  for (const size_t d : inner_first) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

bool is_in_format(MemoryFormat format, IntList sizes, IntList strides) {
  if (format == MemoryFormat::kContiguous || format == MemoryFormat::kPreserve) {
    return is_contiguous(sizes, strides);
  }
  if (sizes.size() != (format == MemoryFormat::kChannelsLast ? 4 : 5)) return false;
  int64_t expected = 1;
  const auto follows = [&](size_t d) {
    if (sizes[d] == 1) return true;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
    return true;
  };
  if (!follows(1)) return false;
  for (size_t d = sizes.size() - 1; d >= 2; --d) {
    if (!follows(d)) return false;
  }
  return follows(0);
}

Dims strides_in_format(std::string_view op, MemoryFormat format, IntList sizes, IntList strides) {
  if (format == MemoryFormat::kPreserve) {
    return is_dense(sizes, strides) ? to_dims(strides) : dense_strides(sizes, {{strides}});
  }
  if (format == MemoryFormat::kContiguous) return contiguous_strides(sizes);
  const size_t rank = format == MemoryFormat::kChannelsLast ? 4 : 5;
  LS_CHECK(sizes.size() == rank, ShapeError,
           "[{}] this memory format needs {} dimensions, got shape {}. Use the contiguous format.",
           op, rank, to_string(sizes));
  return channels_last_strides(sizes);
}

}  // namespace lockstep
