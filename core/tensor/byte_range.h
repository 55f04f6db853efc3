#pragma once

#include <cstdint>

namespace lockstep {

struct TensorImpl;

/// A range of bytes of a storage, from `begin` up to `end`.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin == end; }
};
/// The smallest byte range of its storage that contains all elements of `tensor`; empty for a
/// tensor without elements.
ByteRange byte_range(const TensorImpl& tensor);

}  // namespace lockstep
