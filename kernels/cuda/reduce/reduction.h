#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/dtype.h"
#include "kernels/cuda/divider.h"

namespace lockstep::cuda {

/// Dimensions of a walk through memory, innermost first; strides are in elements.
struct WalkAxes {
  static constexpr int kMaxRank = 16;

  int32_t rank;
  bool narrow;  ///< indices are below 2^31, so `dividers` can be used
  Divider dividers[kMaxRank];
  int64_t sizes[kMaxRank];
  int64_t strides[kMaxRank];
};

struct ReductionResult {
  void* data;  ///< null if not wanted
  DType dtype;
  WalkAxes places;
};

/// Arguments of the reduction kernels. For column kernels, where elements adjacent in memory belong
/// to adjacent results, `kept` leaves out the innermost of these dimensions, whose size is `width`.
struct Reduction {
  const void* in;
  DType dtype;
  WalkAxes kept;
  WalkAxes reduced;
  int64_t outputs;
  int64_t count;  ///< elements reduced to one result
  int64_t width;
  int64_t chunks;  ///< parts that each result's elements are split into
  int64_t chunk;   ///< elements per part
  void* states;    ///< [outputs, chunks] if there are several parts
  ReductionResult result;
  ReductionResult second;
  double number;    ///< parameter of the fold: a divisor, a correction, a power
  int32_t variant;  ///< variant of the fold
};

inline constexpr int kReduceThreads = 256;
inline constexpr int kReduceRowThreads = 8;  ///< threads per column in the column kernels

/// How a reduction is parallelised. It determines the order in which elements are combined, so it
/// depends on the shape alone.
enum class ReduceStrategy : uint8_t {
  kThread,  ///< one thread per result
  kWarp,
  kBlock,
  kColumns,  ///< one block per 32 adjacent results
};
constexpr const char* name(ReduceStrategy strategy) {
  constexpr const char* kNames[] = {"thread", "warp", "block", "columns"};
  return kNames[static_cast<int>(strategy)];
}
inline constexpr int kReduceStrategies = 4;
/// `columns`: elements adjacent in memory belong to adjacent results.
constexpr ReduceStrategy reduce_strategy(int64_t outputs, int64_t count, bool columns) {
  if (count <= 8 || (columns && count < 64 && outputs >= 4096)) return ReduceStrategy::kThread;
  if (columns) return ReduceStrategy::kColumns;
  return count <= 1024 ? ReduceStrategy::kWarp : ReduceStrategy::kBlock;
}

/// Elements per part when there are `blocks` blocks, one per result or tile of results, each of
/// `count` elements: enough parts to fill a large GPU, of at least `least` elements.
constexpr int64_t reduce_chunk(int64_t blocks, int64_t count, int64_t least) {
  constexpr int64_t kBlocks = 1056;  // eight for each of 132 SMs
  constexpr int64_t kMost = 64;      // times `least`: longer sums would lose precision
  const int64_t wanted = (kBlocks + blocks - 1) / blocks;
  const int64_t chunk = std::clamp((count + wanted - 1) / wanted, least, kMost * least);
  return (chunk + 7) / 8 * 8;
}

}  // namespace lockstep::cuda
