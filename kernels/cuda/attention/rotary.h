#pragma once

#include "kernels/cuda/index_splitter.h"

namespace lockstep::cuda {

/// Turns of the pairs of heads [batch, heads, positions, 2 pairs]. Strides are in elements.
struct Rotary {
  struct Strides {
    int64_t batch, head, position, column;
  };
  void* to;
  const void* from;
  const void* cosine;
  const void* sine;
  Strides to_strides, from_strides;
  int64_t cosine_row, cosine_column, sine_row, sine_column;
  int64_t count;            ///< pairs of all heads
  IndexSplitter pairs;      ///< splits an index into row and pair,
  IndexSplitter positions;  ///< a row into head and position,
  IndexSplitter heads;      ///< and a head into batch and head
  bool inverse;
};

}  // namespace lockstep::cuda
