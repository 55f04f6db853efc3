#pragma once

#include "kernels/cuda/index/index_list.h"
#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

/// Adds `stride` times each index to the place of its position; the first call of several begins at
/// `bases`. A position that one of them leaves without an index has the place kNoPlace.
struct IndexPlaces {
  IndexList list;
  Walk<2> positions;  ///< of each position: its index in the list, and where it begins
  int64_t count;      ///< positions
  int64_t stride;
  uint32_t* places;
  bool is_first;
};

/// What one pass of the sort reads and writes. Each warp has a unit of neighbouring positions.
struct GroupPass {
  const uint32_t* places;
  const uint32_t* positions;  ///< null in the first pass: position i is i
  uint32_t* places_out;
  uint32_t* positions_out;
  uint32_t* table;   ///< of [digit][unit]: how many, then where they go
  uint32_t* totals;  ///< of [digit]
  int64_t count;
  int64_t per_unit;
  uint32_t units;
  uint32_t none;  ///< the digits of kNoPlace are those of this place, the largest
  uint32_t shift;
};

}  // namespace lockstep::cuda
