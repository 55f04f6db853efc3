#pragma once

#include <cstdint>

#include "dist/collectives/host_layout.h"
#include "dist/collectives/operation.h"

namespace lockstep::dist {

// Choices between plans that have the same bits. They follow from what all ranks know, hosts and
// the operation, and from no measured time, so all ranks choose alike without a message.

/// Whether a plan of all_reduce, reduce_scatter or all_gather in which bytes go from host to host
/// once loads the busiest link of a host less than one in which all ranks exchange them, by the
/// bytes that a host sends and receives.
bool saves_between_hosts(const Operation& operation, const HostLayout& layout);

/// How the hosts of a group sum up a tensor, or meet in a barrier.
enum class HostWay : uint8_t {
  kParts,     ///< each rank owns a part, which it receives from all hosts and sends to all
  kExchange,  ///< one rank of each host sends everything to those of all others
  kTree,      ///< these pass sums on along a tree of hosts, and results back
};

/// Returns the way that is fastest by these costs, for `l` ranks on each of `h` hosts and `b` bytes
/// of a host's partial sums:
///
///     parts     2 (h - 1) messages + 2 rounds + 2 b (h - 1) / h
///     exchange  (h - 1) (message + b) + round + 2 (l - 1) b inside
///     tree      2 ceil(log2 h) (message + round + b) + 2 (l - 1) b inside
///
/// A message takes a rank 10 us (measured: 7 us of processor time at both ends together, and a
/// wake-up), a round 50 us, a byte 8.5 ns between hosts (1 Gbit/s) and 0.25 ns inside. On a faster
/// network fewer messages would pay for larger tensors as well. `kParts` for more bytes than
/// `most_bytes`, the largest message; there is no tree of hosts for sums over leaves.
HostWay fastest_way(const Operation& operation, const HostLayout& layout, uint64_t most_bytes);

}  // namespace lockstep::dist
