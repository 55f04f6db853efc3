#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/dtype.h"
#include "kernels/cuda/divider.h"

namespace lockstep::cuda {

/// Dimensions of a walk through memory, the innermost first; strides are in elements.
struct WalkAxes {
  static constexpr int kMaxRank = 16;

  int32_t rank;
  bool narrow;  ///< indices are below 2^31, so that dividers serve
  Divider dividers[kMaxRank];
  int64_t sizes[kMaxRank];
  int64_t strides[kMaxRank];
};

struct ReductionResult {
  void* data;  ///< null where there is none
  DType dtype;
  WalkAxes places;
};

/// What kernels that make one result of many elements are launched with. In kernels over columns,
/// where neighbours in memory belong to neighbouring results, `kept` leaves out the innermost of
/// these dimensions, which `width` is the size of.
struct Reduction {
  const void* in;
  DType dtype;
  WalkAxes kept;
  WalkAxes reduced;
  int64_t outputs;
  int64_t count;  ///< elements that make one result
  int64_t width;
  int64_t chunks;  ///< parts that the elements of a result are cut into
  int64_t chunk;   ///< elements in a part
  void* states;    ///< [outputs, chunks] where there are several parts
  ReductionResult result;
  ReductionResult second;
  double number;    ///< what the fold takes it for: a divisor, a correction, a power
  int32_t variant;  ///< of the fold
};

inline constexpr int kReduceThreads = 256;
inline constexpr int kReduceRowThreads = 8;  ///< of the kernels over columns, for each column

/// How a reduction's elements are shared out. It decides the order in which they are joined, so it
/// depends on the shape alone.
enum class ReduceWay : uint8_t {
  kThread,  ///< a thread for each result
  kWarp,
  kBlock,
  kColumns,  ///< a block for 32 neighbouring results
};
constexpr const char* name(ReduceWay way) {
  constexpr const char* kNames[] = {"thread", "warp", "block", "columns"};
  return kNames[static_cast<int>(way)];
}
inline constexpr int kReduceWays = 4;
/// `columns`: neighbouring results are of neighbouring elements.
constexpr ReduceWay reduce_way(int64_t outputs, int64_t count, bool columns) {
  if (count <= 8 || (columns && count < 64 && outputs >= 4096)) return ReduceWay::kThread;
  if (columns) return ReduceWay::kColumns;
  return count <= 1024 ? ReduceWay::kWarp : ReduceWay::kBlock;
}

/// Elements of one part when `blocks` blocks, one for each result or tile of them, would take
/// `count` elements each: as many parts as fill a large GPU, of at least `least` elements.
constexpr int64_t reduce_chunk(int64_t blocks, int64_t count, int64_t least) {
  constexpr int64_t kBlocks = 1056;  // eight for each of 132 processors
  constexpr int64_t kMost = 64;      // times the least: longer sums would lose digits
  const int64_t wanted = (kBlocks + blocks - 1) / blocks;
  const int64_t chunk = std::clamp((count + wanted - 1) / wanted, least, kMost * least);
  return (chunk + 7) / 8 * 8;
}

}  // namespace lockstep::cuda
