#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cuda/walk.h"

namespace lockstep {
struct StridedPlan;
}

namespace lockstep::cuda {

/// Arguments of the kernels that transpose matrices whose columns are contiguous in one tensor and
/// whose rows are contiguous in the other, tile by tile through shared memory, so that all accesses
/// are coalesced. Strides are in bytes.
struct CopyTiles {
  static constexpr int64_t kSide = 32;  ///< threads along a side; each moves `width` elements

  const char* from;
  char* to;
  int64_t rows;         ///< number of rows; successive rows are adjacent in `from`
  int64_t columns;      ///< number of columns; successive columns are adjacent in `to`
  int64_t to_row;       ///< row stride in `to`
  int64_t from_column;  ///< column stride in `from`
  int64_t tiles;        ///< number of tiles in all matrices
  AnyDivider across;    ///< tiles per row of tiles
  AnyDivider down;      ///< rows of tiles per matrix
  Walk<2> matrices;     ///< offset of each matrix in `to` and in `from`
  int32_t unit;         ///< bytes per element
  int32_t width;        ///< elements moved together (4 or 8 bytes), or 1
};

/// Plans the copy of elements of `unit` bytes (operand 1 to operand 0 of the plan) in tiles.
/// Returns nullopt unless two dimensions form a matrix as above, of at least 16 rows and columns.
std::optional<CopyTiles> plan_tiles(const StridedPlan& plan, int64_t unit);

}  // namespace lockstep::cuda
