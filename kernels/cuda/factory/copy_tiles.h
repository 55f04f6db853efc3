#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cuda/walk.h"

namespace lockstep {
struct StridedPlan;
}

namespace lockstep::cuda {

/// What the kernels are launched with that copy matrices whose columns are neighbours in one tensor
/// and whose rows are in the other, tile by tile through shared memory: so memory is read and
/// written in whole lines. Strides are in bytes.
struct CopyTiles {
  static constexpr int64_t kSide = 32;  ///< threads along a tile; each takes `width` neighbours

  const char* from;
  char* to;
  int64_t rows;         ///< their elements are neighbours in `from`, row after row
  int64_t columns;      ///< neighbours in `to`
  int64_t to_row;       ///< from row to row in `to`
  int64_t from_column;  ///< from column to column in `from`
  int64_t tiles;        ///< of all matrices
  AnyDivider across;    ///< tiles in a row of them
  AnyDivider down;      ///< rows of tiles in a matrix
  Walk<2> matrices;     ///< of each: where in `to`, where in `from`
  int32_t unit;         ///< bytes of an element
  int32_t width;        ///< elements that are moved together: 4 or 8 bytes, or 1
};

/// How to copy elements of `unit` bytes of a plan (a copy's: operand 1 to operand 0) in tiles;
/// nothing where no two dimensions are a matrix as above, of 16 rows and columns at least.
std::optional<CopyTiles> plan_tiles(const StridedPlan& plan, int64_t unit);

}  // namespace lockstep::cuda
