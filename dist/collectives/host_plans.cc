// Plans for groups of several hosts, in which bytes go from host to host once.

#include <algorithm>

#include "dist/collectives/host_sums.h"
#include "dist/collectives/schedule_builder.h"

namespace lockstep::dist {

namespace {

using StepId = ScheduleBuilder::StepId;
using Memory = Slice::Memory;

/// What a rank owns of a tensor: where it begins in the input and in the output.
struct OwnedPart {
  uint64_t input = 0;
  uint64_t output = 0;
  Segments segments;

  Slice slice(Memory memory, uint64_t segment) const {
    const uint64_t begin = memory == Memory::kInput ? input : output;
    return {memory, begin + segments.offset(segment), segments.size(segment)};
  }
};

/// Divides a tensor among hosts evenly, and what a host has among its ranks.
std::vector<OwnedPart> divided(const HostLayout& layout, uint64_t bytes, uint64_t most) {
  std::vector<OwnedPart> parts(static_cast<size_t>(layout.ranks()));
  const Parts blocks(bytes, layout.hosts());
  for (int host = 0; host < layout.hosts(); ++host) {
    const Parts here(blocks.size(host), layout.count(host));
    for (const int rank : layout.ranks_of(host)) {
      const int local = layout.local(rank);
      const uint64_t at = blocks.offset(host) + here.offset(local);
      parts[static_cast<size_t>(rank)] = {at, at, Segments(here.size(local), most)};
    }
  }
  return parts;
}

/// Bytes of values of which a partial sum still fits in a message.
uint64_t most_values(const ScheduleBuilder& builder, const Operation& operation) {
  return builder.cut().segment_bytes / partial_growth(operation.dtype, operation.reduction.op);
}

uint64_t most_segments(const std::vector<OwnedPart>& parts) {
  uint64_t most = 0;
  for (const OwnedPart& part : parts) most = std::max(most, part.segments.count());
  return most;
}

uint64_t most_room(const std::vector<OwnedPart>& parts) {
  uint64_t most = 0;
  for (const OwnedPart& part : parts) most = std::max(most, part.segments.room());
  return most;
}

/// The ranks in the order in which this host works for them, the same on all its ranks: from the
/// next host on, so that hosts send to different ones at the same time.
std::vector<int> owners_in_turn(const ScheduleBuilder& builder) {
  const HostLayout& layout = builder.layout();
  const int host = layout.host_of(builder.rank());
  std::vector<int> owners;
  for (int i = 1; i <= layout.hosts(); ++i) {
    const auto ranks = layout.ranks_of((host + i) % layout.hosts());
    owners.insert(owners.end(), ranks.begin(), ranks.end());
  }
  return owners;
}

int agent_here(const ScheduleBuilder& builder, int owner) {
  return builder.layout().agent(builder.layout().host_of(builder.rank()), owner);
}

/// Brings what `owner` has at `from` to `to` of the ranks of all hosts but `without`: the agent of
/// each host gets it and passes it on. The steps `before` come first on this rank.
void deliver(ScheduleBuilder& builder, int owner, const Slice& from, const Slice& to,
             const std::vector<StepId>& before, int without = -1) {
  const HostLayout& layout = builder.layout();
  const int host = layout.host_of(builder.rank());
  if (host == without) return;
  const auto ordered = [&](StepId step) {
    for (const StepId each : before) builder.order(each, step);
    return step;
  };
  const auto others_here = [&](const auto& send) {
    for (const int rank : layout.ranks_of(host)) {
      if (rank != builder.rank()) send(rank);
    }
  };
  if (owner == builder.rank()) {
    for (int i = 1; i < layout.hosts(); ++i) {
      const int other = (host + i) % layout.hosts();
      if (other == without) continue;
      ordered(builder.send(layout.agent(other, owner), HostSums::kResults, from));
    }
    return others_here([&](int rank) { ordered(builder.send(rank, HostSums::kResults, from)); });
  }
  const int agent = layout.agent(host, owner);
  const bool is_agent = agent == builder.rank();
  const StepId received =
      ordered(builder.receive(is_agent ? owner : agent, HostSums::kResults, to));
  if (!is_agent) return;
  others_here(
      [&](int rank) { builder.order(received, builder.send(rank, HostSums::kResults, to)); });
}

/// Sums up the ranks' values of all parts by hosts, segment by segment.
class PartSums {
 public:
  PartSums(ScheduleBuilder& builder, const Operation& operation,
           const std::vector<OwnedPart>& parts)
      : builder_(builder),
        parts_(parts),
        sums_(builder, operation, items(builder, parts), own_segments(builder, parts),
              most_room(parts)) {}

  /// Adds the steps for a segment of `owner`'s part. Returns those after which this rank's values
  /// of it have been read, and on the owner its result is there.
  std::vector<StepId> add(int owner, uint64_t segment) {
    const OwnedPart& part = parts_[static_cast<size_t>(owner)];
    const Slice values = part.slice(Memory::kInput, segment);
    const int agent = agent_here(builder_, owner);
    if (agent != builder_.rank()) return sums_.send(agent, values);
    HostSums::Partials own = sums_.add_up(values);
    if (owner != builder_.rank()) {
      sums_.send_partials(owner, own);
      return std::move(own.made);
    }
    return {sums_.finish(own, part.slice(Memory::kOutput, segment),
                         [&](int host) { return builder_.layout().agent(host, owner); })};
  }

 private:
  static uint64_t items(const ScheduleBuilder& builder, const std::vector<OwnedPart>& parts) {
    uint64_t items = 0;
    for (int owner = 0; owner < builder.size(); ++owner) {
      if (agent_here(builder, owner) != builder.rank()) continue;
      items += parts[static_cast<size_t>(owner)].segments.count();
    }
    return items;
  }
  static uint64_t own_segments(const ScheduleBuilder& builder,
                               const std::vector<OwnedPart>& parts) {
    return parts[static_cast<size_t>(builder.rank())].segments.count();
  }

  ScheduleBuilder& builder_;
  const std::vector<OwnedPart>& parts_;
  HostSums sums_;
};

}  // namespace

void plan_all_reduce_over_hosts(ScheduleBuilder& builder, const Operation& operation) {
  const std::vector<OwnedPart> parts =
      divided(builder.layout(), bytes_of(operation), most_values(builder, operation));
  const std::vector<int> owners = owners_in_turn(builder);
  PartSums sums(builder, operation, parts);
  std::vector<std::vector<StepId>> summed(parts.size());
  for (uint64_t k = 0; k < most_segments(parts); ++k) {
    for (const int owner : owners) {
      const auto index = static_cast<size_t>(owner);
      if (k < parts[index].segments.count()) summed[index] = sums.add(owner, k);
    }
    for (const int owner : owners) {
      const auto index = static_cast<size_t>(owner);
      if (k >= parts[index].segments.count()) continue;
      const Slice result = parts[index].slice(Memory::kOutput, k);
      deliver(builder, owner, result, result, summed[index]);
    }
  }
}

void plan_reduce_scatter_over_hosts(ScheduleBuilder& builder, const Operation& operation) {
  const uint64_t bytes = bytes_of(operation);
  const Segments segments(bytes, most_values(builder, operation));
  std::vector<OwnedPart> parts;
  for (int rank = 0; rank < builder.size(); ++rank) {
    parts.push_back({static_cast<uint64_t>(rank) * bytes, 0, segments});
  }
  PartSums sums(builder, operation, parts);
  for (uint64_t k = 0; k < segments.count(); ++k) {
    for (const int owner : owners_in_turn(builder)) sums.add(owner, k);
  }
}

void plan_all_gather_over_hosts(ScheduleBuilder& builder, const Operation& operation) {
  const uint64_t bytes = bytes_of(operation);
  const Segments segments = builder.segments(bytes);
  const OwnedPart own{0, static_cast<uint64_t>(builder.rank()) * bytes, segments};
  for (uint64_t k = 0; k < segments.count(); ++k) {
    for (const int owner : owners_in_turn(builder)) {
      const OwnedPart part{0, static_cast<uint64_t>(owner) * bytes, segments};
      deliver(builder, owner, own.slice(Memory::kInput, k), part.slice(Memory::kOutput, k), {});
    }
  }
  builder.copy({Memory::kOutput, own.output, bytes}, {Memory::kInput, 0, bytes});
}

void plan_broadcast_over_hosts(ScheduleBuilder& builder, const Operation& operation) {
  const HostLayout& layout = builder.layout();
  const int root = operation.root;
  const int home = layout.host_of(root);
  const bool is_home = layout.host_of(builder.rank()) == home;
  std::vector<int> others;
  for (int i = 1; i < layout.hosts(); ++i) {
    const auto ranks = layout.ranks_of((home + i) % layout.hosts());
    others.insert(others.end(), ranks.begin(), ranks.end());
  }
  const uint64_t bytes = bytes_of(operation);
  const Parts parts(bytes, static_cast<int>(others.size()));
  const uint64_t rounds = builder.segments(parts.size(0)).count();  // no part is larger
  for (uint64_t k = 0; k < rounds; ++k) {
    for (size_t i = 0; i < others.size(); ++i) {
      const auto number = static_cast<int>(i);
      const Segments segments = builder.segments(parts.size(number));
      if (k >= segments.count()) continue;
      const OwnedPart part{parts.offset(number), parts.offset(number), segments};
      const Slice to = part.slice(Memory::kOutput, k);
      std::vector<StepId> before;
      if (builder.rank() == root) {
        const Slice from = part.slice(Memory::kInput, k);
        builder.send(others[i], HostSums::kValues, from);
        for (const int rank : layout.ranks_of(home)) {
          if (rank != root) builder.send(rank, HostSums::kValues, from);
        }
      } else if (is_home || builder.rank() == others[i]) {
        before.push_back(builder.receive(root, HostSums::kValues, to));
      }
      deliver(builder, others[i], to, to, before, home);
    }
  }
  if (builder.rank() == root) {
    builder.copy({Memory::kOutput, 0, bytes}, {Memory::kInput, 0, bytes});
  }
}

}  // namespace lockstep::dist
