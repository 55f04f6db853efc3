#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dist/collectives/operation.h"

namespace lockstep::dist {

/// Bytes in one of the memories that an operation uses.
struct Slice {
  enum class Memory : uint8_t { kInput, kOutput, kScratch };
  Memory memory = Memory::kInput;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

/// One thing to do, once those before it are done.
struct Step {
  enum class Kind : uint8_t { kSend, kReceive, kReduce, kCopy };
  Kind kind = Kind::kCopy;
  /// Of send and receive. The messages of one lane between two ranks are sent and received in the
  /// order of their steps on both sides.
  uint8_t lane = 0;
  int peer = 0;               ///< rank within the group
  Slice slice;                ///< what is sent, received into, or the result
  uint32_t first_source = 0;  ///< of reduce and copy, in Schedule::sources
  uint32_t source_count = 0;
  uint32_t first_next = 0;  ///< steps that wait for this one, in Schedule::next
  uint32_t next_count = 0;
  uint32_t waits_for = 0;  ///< number of steps that name this one as next
};

inline constexpr int kLanes = 4;

/// All that one rank does in an operation: sends, receives, reductions and copies, and which waits
/// for which. A plan: it moves nothing itself. The ranks' plans of one operation fit each other.
struct Schedule {
  std::vector<Step> steps;
  std::vector<Slice> sources;
  std::vector<uint32_t> next;
  uint64_t scratch_bytes = 0;
  DType dtype = DType::kU8;
  Reduction reduction;
  /// Of reductions in the order of a tree (`sum_tree`), for their sources; else empty.
  std::vector<uint8_t> joins;
};

/// Bytes that the rank sends to others.
uint64_t bytes_sent(const Schedule& schedule);

/// How messages are cut; the same on all ranks.
struct Cut {
  size_t segment_bytes = 60 * 1024;  ///< of one message, at most; a multiple of 64
  int window = 16;                   ///< segments from one peer that scratch memory has room for
  /// Up to so many bytes from each rank, an operation takes the way of fewest messages.
  size_t small_bytes = 8 * 1024;
};

/// The plan of rank `rank` among `size`. Every element of a reduction is reduced in the order of
/// ranks (see `reduce`), whatever the size, the cut and the timing, so that a result has the same
/// bits on all ranks and in every run.
///
/// - all_reduce: the rank that owns a part of the elements (equal parts, at multiples of 64 bytes)
///   is sent that part by all others, reduces segment by segment and sends each result to all:
///   2 (size - 1) / size of the bytes leave each rank, which is the least possible. Small ones:
///   all send all to all, and each reduces.
///   Over leaves, each sends the sums of its subtrees, and they are added in the tree's order.
/// - reduce_scatter and all_gather are the halves of it; reduce gathers at the root.
/// - broadcast: the root sends one part to each rank, which passes it on to the others; small ones
///   go to all directly.
/// - all_to_all, send and receive: directly. barrier: an empty message to and from all.
Schedule plan(const Operation& operation, int rank, int size, const Cut& cut);

}  // namespace lockstep::dist
