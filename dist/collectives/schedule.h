#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dist/collectives/host_choice.h"
#include "dist/collectives/host_layout.h"
#include "dist/collectives/operation.h"
#include "dist/collectives/tree_reduction.h"

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
  uint16_t reduction = 0;     ///< reduce: index in Schedule::reductions
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
  std::vector<OrderedReduction> reductions;
  uint64_t scratch_bytes = 0;
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
  /// The way of all_reduce and barrier between hosts where it is possible, for tests; else the
  /// fastest.
  std::optional<HostWay> way = {};
};

/// Returns the plan of rank `rank` among those of `layout`. Every element of a reduction is reduced
/// in the order of the layout (dist/collectives/sum_order.h), with 16 bits rounded once, at the
/// end, for any size, cut and timing, so that results are bitwise equal on all ranks and in every
/// run.
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
///
/// Where a group has several hosts, and several ranks on one of them, bytes go from host to host
/// once, and through the memory of hosts to their other ranks. Of each part one rank of each host
/// is the agent (HostLayout::agent), so that all ranks share the work between hosts:
///
/// - all_reduce and reduce_scatter: agents add up their host's values and send the partial sums to
///   the part's owner. Partial sums of 16 bits are f32 on their way. A host sends (h - 1) / h of
///   the bytes of partial sums (over leaves, of each subtree) where each of h hosts has as many
///   ranks; directly its ranks would send as much each.
/// - all_gather, and the results of all_reduce: owners send to the agents, which pass them on.
/// - broadcast: the root sends one part to each rank of other hosts, which passes it on to its
///   host's ranks and the agents of the others; and everything to its own host's ranks.
/// - Small all_reduce, and barrier: one rank of each host reduces for it, and exchanges partial
///   sums with those of the other hosts, or passes them on along a tree of hosts (`fastest_way`).
/// - Where this saves no bytes between hosts (16 bits, or uneven hosts), plans are as for one host.
Schedule plan(const Operation& operation, int rank, const HostLayout& layout, const Cut& cut);

/// Returns the plan for `size` ranks of one host.
Schedule plan(const Operation& operation, int rank, int size, const Cut& cut);

}  // namespace lockstep::dist
