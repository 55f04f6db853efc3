#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dist/collectives/schedule_builder.h"
#include "dist/collectives/segment_ring.h"

namespace lockstep::dist {

/// Adds the steps by which values are summed by hosts. For each item (some bytes of every rank's
/// values) one rank of each host is the agent: it makes its host's partial sums
/// (`SumOrder::Partial`) from what the host's ranks send it. Where the result is wanted, a rank
/// finishes the item: it adds up the partial sums of all hosts.
class HostSums {
 public:
  using StepId = ScheduleBuilder::StepId;

  /// Lanes of what is to be added, and of results.
  static constexpr int kValues = 0;
  static constexpr int kResults = 1;

  /// Partial sums of this host, and the steps that make them.
  struct Partials {
    std::vector<Slice> slices;
    std::vector<StepId> made;
  };

  /// This rank is the agent of `items` items and finishes `finished` of them, each of up to
  /// `item_bytes` bytes of values, a multiple of 64.
  HostSums(ScheduleBuilder& builder, const Operation& operation, uint64_t items, uint64_t finished,
           uint64_t item_bytes);

  /// Sends this rank's sums at `values` to the agent, another rank. Returns the steps that read
  /// them.
  std::vector<StepId> send(int agent, Slice values);
  /// Makes the partial sums of the next item, as its agent.
  Partials add_up(const Slice& values);
  /// Sends the partial sums of the item to the rank that finishes it.
  void send_partials(int to, const Partials& own);
  /// Finishes the item, whose agents on the other hosts are `agent_of(host)`. Returns the step that
  /// writes `result`.
  StepId finish(const Partials& own, const Slice& result, const std::function<int(int)>& agent_of);

 private:
  ScheduleBuilder& builder_;
  int host_;
  uint64_t growth_;
  std::vector<uint16_t> reductions_;  ///< of this host's partial sums
  uint16_t finish_;
  SegmentRing values_;    ///< sums of the host's other ranks
  SegmentRing partials_;  ///< of this host
  SegmentRing foreign_;   ///< partial sums of the other hosts
};

}  // namespace lockstep::dist
