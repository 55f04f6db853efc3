#pragma once

#include "kernels/cuda/index/index_list.h"
#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

/// Adds `stride` times each index to the place of its position; if `is_first`, places are first set
/// to the positions' base offsets. A position for which some list has no index gets kNoPlace.
struct IndexPlaces {
  IndexList list;
  Walk<2> positions;  ///< for each position: its offset in the list, and its base offset
  int64_t count;      ///< number of positions
  int64_t stride;
  uint32_t* places;
  bool is_first;
};

/// Arguments of one pass of the sort. Each warp processes a unit of adjacent positions.
struct GroupPass {
  const uint32_t* places;
  const uint32_t* positions;  ///< null in the first pass: the identity
  uint32_t* places_out;
  uint32_t* positions_out;
  uint32_t* table;   ///< [digit][unit]: counts, then offsets
  uint32_t* totals;  ///< [digit]
  int64_t count;
  int64_t per_unit;
  uint32_t units;
  uint32_t none;  ///< place whose digits kNoPlace is sorted by; above all others
  uint32_t shift;
};

}  // namespace lockstep::cuda
