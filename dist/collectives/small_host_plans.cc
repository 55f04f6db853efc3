// Plans for small tensors in groups of several hosts: messages cost more than bytes.

#include "dist/collectives/host_sums.h"
#include "dist/collectives/schedule_builder.h"

namespace lockstep::dist {

namespace {

using StepId = ScheduleBuilder::StepId;
using Memory = Slice::Memory;

/// Sums of hosts along a tree: the host with the lowest number of a subtree collects its sum. A
/// host's children are those at the distances 1, 2, 4, ... below its own place in a subtree.
class HostTree {
 public:
  HostTree(ScheduleBuilder& builder, const Operation& operation)
      : builder_(builder),
        host_(builder.layout().host_of(builder.rank())),
        kept_(partial_dtype(operation.dtype, operation.reduction.op)) {
    const Reduction reduction = reduction_of_partials(operation.reduction);
    join_ = builder.add_reduction({kept_, kept_, reduction, {}});
    finish_ = builder.add_reduction({kept_, operation.dtype, reduction, {0}});
    const int hosts = builder.layout().hosts();
    const int reach = host_ == 0 ? hosts : host_ & -host_;
    for (int distance = 1; distance < reach && host_ + distance < hosts; distance *= 2) {
      children_.push_back(builder.layout().leader(host_ + distance));
    }
  }

  /// Adds the steps from this host's sum to the result of all. Returns the step that writes it.
  StepId add(const HostSums::Partials& own, const Slice& result) {
    const Slice& sum = own.slices.front();
    StepId ready = own.made.front();
    for (const int child : children_) {
      const Slice part{Memory::kScratch, builder_.scratch(sum.bytes), sum.bytes};
      const StepId received = builder_.receive(child, HostSums::kValues, part);
      builder_.add_source(sum);
      builder_.add_source(part);
      const StepId joined = builder_.reduce(sum, join_);
      builder_.order(received, joined);
      builder_.order(ready, joined);
      ready = joined;
    }
    const StepId done = host_ == 0 ? finish(sum, result, ready) : ask_parent(sum, result, ready);
    // The largest subtree has the longest way.
    for (size_t i = children_.size(); i-- > 0;) {
      builder_.order(done, builder_.send(children_[i], HostSums::kResults, result));
    }
    return done;
  }

 private:
  StepId finish(const Slice& sum, const Slice& result, StepId ready) {
    builder_.add_source(sum);
    const StepId done = builder_.reduce(result, finish_);
    builder_.order(ready, done);
    return done;
  }
  StepId ask_parent(const Slice& sum, const Slice& result, StepId ready) {
    const int parent = builder_.layout().leader(host_ - (host_ & -host_));
    builder_.order(ready, builder_.send(parent, HostSums::kValues, sum));
    const StepId received = builder_.receive(parent, HostSums::kResults, result);
    builder_.order(ready, received);
    return received;
  }

  ScheduleBuilder& builder_;
  int host_;
  DType kept_;
  uint16_t join_;
  uint16_t finish_;
  std::vector<int> children_;  ///< their leaders, nearest first
};

/// Sums up on one rank of each host. There `between(sums, own, result)` adds the steps from the
/// host's partial sums to the result and returns the one that writes it.
template <class Between>
void plan_by_leaders(ScheduleBuilder& builder, const Operation& operation, const Between& between) {
  const HostLayout& layout = builder.layout();
  const int host = layout.host_of(builder.rank());
  const int leader = layout.leader(host);
  const Slice values{Memory::kInput, 0, bytes_of(operation)};
  const Slice result{Memory::kOutput, 0, bytes_of(operation)};
  HostSums sums(builder, operation, 1, 1, builder.segments(values.bytes).room());
  if (builder.rank() != leader) {
    const std::vector<StepId> sent = sums.send(leader, values);
    const StepId received = builder.receive(leader, HostSums::kResults, result);
    for (const StepId step : sent) builder.order(step, received);
    return;
  }
  const StepId done = between(sums, sums.add_up(values), result);
  for (const int rank : layout.ranks_of(host)) {
    if (rank != leader) builder.order(done, builder.send(rank, HostSums::kResults, result));
  }
}

}  // namespace

void plan_all_reduce_by_exchange(ScheduleBuilder& builder, const Operation& operation) {
  const HostLayout& layout = builder.layout();
  const int host = layout.host_of(builder.rank());
  const auto leader = [&](int other) { return layout.leader(other); };
  plan_by_leaders(builder, operation,
                  [&](HostSums& sums, const HostSums::Partials& own, const Slice& result) {
                    for (int i = 1; i < layout.hosts(); ++i) {
                      sums.send_partials(leader((host + i) % layout.hosts()), own);
                    }
                    return sums.finish(own, result, leader);
                  });
}

void plan_all_reduce_along_tree(ScheduleBuilder& builder, const Operation& operation) {
  plan_by_leaders(builder, operation,
                  [&](HostSums&, const HostSums::Partials& own, const Slice& result) {
                    return HostTree(builder, operation).add(own, result);
                  });
}

void plan_barrier_by_exchange(ScheduleBuilder& builder, const Operation&) {
  plan_all_reduce_by_exchange(builder, {.kind = OpKind::kBarrier});
}

void plan_barrier_along_tree(ScheduleBuilder& builder, const Operation&) {
  plan_all_reduce_along_tree(builder, {.kind = OpKind::kBarrier});
}

}  // namespace lockstep::dist
