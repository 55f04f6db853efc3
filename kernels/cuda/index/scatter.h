#pragma once

#include "core/tensor/dtype.h"
#include "kernels/cuda/index/index_list.h"
#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

/// How the values of one element are combined.
enum class ScatterJoin : uint8_t { kSum, kProd, kMean, kAmax, kAmin };

/// Writes the values of positions to their places, for each of some columns. Each place is written
/// by one thread, in the order of the positions.
struct GroupedWrite {
  const uint32_t* places;     ///< sorted places; kNoPlace at the end
  const uint32_t* positions;  ///< positions, in the order of `places`
  int64_t count;              ///< number of positions
  int64_t items;              ///< positions times columns
  AnyDivider columns;
  int64_t place_stride;   ///< stride between places in out
  Walk<2> column_walk;    ///< offset of each column in out and in values
  Walk<1> position_walk;  ///< offset of each position in values
  const void* values;
  void* out;
  double real_factor;  ///< factor of each added value, for floats
  int64_t integer_factor;
  DType dtype;
  ScatterJoin join;
  bool include_self;
};

/// Writes one number to every place of the list.
struct ScatterFill {
  IndexList list;
  void* out;
  int64_t count;   ///< number of elements written
  int64_t stride;  ///< stride in out along the indexed dimension
  Walk<2> walk;    ///< for each element: offset in out without the index, and in the list
  alignas(8) unsigned char number[8];
};

}  // namespace lockstep::cuda
