#pragma once

#include "core/tensor/dtype.h"
#include "kernels/cuda/index/index_list.h"
#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

/// What becomes of the values for one element.
enum class ScatterJoin : uint8_t { kSum, kProd, kMean, kAmax, kAmin };

/// Values at positions are written to the places that the positions have, every place by one thread
/// in the order of the positions, and that for each of some columns.
struct GroupedWrite {
  const uint32_t* places;     ///< sorted; kNoPlace at the end
  const uint32_t* positions;  ///< as `places` is sorted
  int64_t count;              ///< of positions
  int64_t items;              ///< positions times columns
  AnyDivider columns;
  int64_t place_stride;   ///< in out
  Walk<2> column_walk;    ///< of each column: where in out, where in values
  Walk<1> position_walk;  ///< of each position: where in values
  const void* values;
  void* out;
  double real_factor;  ///< of each value that is added
  int64_t integer_factor;
  DType dtype;
  ScatterJoin join;
  bool include_self;
};

/// One number at every place of the list.
struct ScatterFill {
  IndexList list;
  void* out;
  int64_t count;   ///< of elements written
  int64_t stride;  ///< in out, along the indexed dimension
  Walk<2> walk;    ///< of each: where in out without the index, where in the list
  alignas(8) unsigned char number[8];
};

}  // namespace lockstep::cuda
