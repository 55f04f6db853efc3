#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dist/collectives/operation.h"

namespace lockstep::dist {

/// A range of bytes in one of the memories of an operation.
struct Slice {
  enum class Memory : uint8_t { kInput, kOutput, kScratch };
  Memory memory = Memory::kInput;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

/// One step of a schedule, which runs when the steps it waits for are done.
struct Step {
  enum class Kind : uint8_t { kSend, kReceive, kReduce, kCopy };
  Kind kind = Kind::kCopy;
  /// Send and receive: the messages of one lane between two ranks are sent and received in the
  /// order of their steps on both sides.
  uint8_t lane = 0;
  int peer = 0;               ///< rank within the group
  Slice slice;                ///< memory that is sent, received into, or written as the result
  uint32_t first_source = 0;  ///< reduce and copy: index in Schedule::sources
  uint32_t source_count = 0;
  uint32_t first_next = 0;  ///< steps that wait for this one, in Schedule::next
  uint32_t next_count = 0;
  uint32_t waits_for = 0;  ///< number of steps that this one waits for
};

/// Number of lanes: message streams with tags of their own between two ranks.
inline constexpr int kLanes = 4;

/// Plan of one rank's part of an operation: a graph of sends, receives, reductions and copies. The
/// ranks' plans of one operation match each other. ScheduleRun executes it.
struct Schedule {
  std::vector<Step> steps;
  std::vector<Slice> sources;
  std::vector<uint32_t> next;
  uint64_t scratch_bytes = 0;
  DType dtype = DType::kU8;
  Reduction reduction;
  /// `joins` of `sum_tree` for reductions in the order of a tree; else empty.
  std::vector<uint8_t> joins;
};

/// Returns the number of bytes that the rank sends to others.
uint64_t bytes_sent(const Schedule& schedule);

/// How transfers are divided into messages; the same on all ranks. A Transport gives its own
/// segment size and window.
struct Cut {
  size_t segment_bytes = 60 * 1024;  ///< largest message; a multiple of 64
  int window = 16;                   ///< segments from one peer that scratch memory has room for
  /// Tensors of up to this size use the algorithm with the fewest messages: latency outweighs the
  /// additional bytes.
  size_t small_bytes = 8 * 1024;
};

/// Returns the plan of rank `rank` among `size`. Every element of a reduction is reduced in the
/// order of ranks (see `reduce`), for any size, cut and timing, so that results are bitwise equal
/// on all ranks and in every run.
///
/// - all_reduce: each rank owns a part of the elements (equal parts, at multiples of 64 bytes). It
///   receives that part from all others, reduces segment by segment and sends each result to all:
///   every rank sends 2 (size - 1) / size of the bytes, which is the minimum. Small tensors: all
///   ranks send everything to all, and each reduces.
///   Over leaves, ranks send the sums of their subtrees, which are added in the tree's order.
/// - reduce_scatter and all_gather are the two halves of all_reduce; reduce gathers at the root.
/// - broadcast: the root sends one part to each rank, which passes it on to the others; small
///   tensors are sent to all directly.
/// - all_to_all, send and receive: direct messages. barrier: an empty message to and from all.
Schedule plan(const Operation& operation, int rank, int size, const Cut& cut);

}  // namespace lockstep::dist
