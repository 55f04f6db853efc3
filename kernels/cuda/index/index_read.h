#pragma once

#include "kernels/cuda/index/index_list.h"
#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

// What the kernels of index_read.cu are launched with. Counts and strides are in units: elements,
// or pieces of several bytes of whole runs of elements.

/// to[before][place][after][inner] = from[before][list[place]][after][inner].
struct IndexedRead {
  IndexList list;
  const void* from;
  void* to;
  int64_t count;  ///< units written
  AnyDivider inner;
  AnyDivider after;
  AnyDivider places;
  int64_t before_stride;
  int64_t place_stride;
  Walk<1> after_walk;
};

/// to[i] = from[where i is, but list[i] along one dimension].
struct Gather {
  IndexList list;
  const void* from;
  void* to;
  int64_t stride;  ///< along that dimension
  Walk<1> walk;
};

/// Matrices with what is above (lower) or below (not lower) a diagonal cleared.
struct Triangle {
  const void* from;
  void* to;
  int64_t count;  ///< elements
  AnyDivider columns;
  AnyDivider rows;
  int64_t diagonal;
  bool lower;
};

}  // namespace lockstep::cuda
