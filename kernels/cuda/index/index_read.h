#pragma once

#include "kernels/cuda/index/index_list.h"
#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

// Arguments of the kernels of index_read.cu. Counts and strides are in units: elements, or several
// bytes of a contiguous run of elements.

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

/// to[i] = from[j], where j is i with its coordinate along one dimension replaced by list[i].
struct Gather {
  IndexList list;
  const void* from;
  void* to;
  int64_t stride;  ///< stride along the indexed dimension
  Walk<1> walk;
};

/// Copies matrices and zeroes the part above (lower) or below (not lower) a diagonal.
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
