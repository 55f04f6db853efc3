#include <algorithm>
#include <deque>

#include "core/base/check.h"
#include "dist/fsdp/shard_layout.h"
#include "dist/simulate/collective_cost.h"
#include "dist/simulate/simulated_step.h"
#include "dist/simulate/stragglers.h"

namespace lockstep::dist {

namespace {

/// Bytes of a unit's operations.
struct UnitBytes {
  double gathered = 0;
  double vectors = 0;  ///< that are gathered as they are beside casts
  double reduced = 0;
};

UnitBytes bytes_of(const UnitWork& unit, bool is_root, int64_t ranks, const ShardingWork& how) {
  std::vector<int64_t> elements;
  int64_t vectors = 0, matrices = 0;
  for (const ParameterWork& each : unit.parameters) {
    elements.push_back(each.elements);
    (each.is_matrix ? matrices : vectors) += blocks_of(each.elements) * kShardBlock;
  }
  const ShardLayout layout(elements, static_cast<int>(ranks));
  const auto arena = static_cast<double>(layout.elements());
  // As UnitValues: vectors come first then, and the first rank's part must hold them.
  const bool casts = how.gathers_casts && !is_root && matrices > 0 &&
                     how.strategy != ShardStrategy::kShardOptimizer &&
                     vectors <= layout.shard_elements();
  return {.gathered = arena * (casts ? 2 : 4),
          .vectors = casts ? 4.0 * static_cast<double>(vectors) : 0,
          .reduced = arena * (how.reduces_halves ? 2 : 4)};
}

/// The operations of one group of ranks, which use the link one after the other.
class Queue {
 public:
  /// Adds an operation that is begun at `begin`. Returns when its result is there.
  double run(double begin, const CollectiveCost& cost) {
    free_ = std::max(free_, begin) + cost.link;
    return free_ + cost.latency;
  }

 private:
  double free_ = 0;
};

/// Runs one step. Time is that of the thread that computes.
class ShardedStep {
 public:
  ShardedStep(const StepWork& work, const Cluster& cluster, const ShardingWork& how)
      : work_(work),
        how_(how),
        groups_(shard_groups(cluster, how.shard_size)),
        slowest_(slowest_factor(cluster.stragglers, cluster.ranks(), cluster.hosts)) {
    const int64_t parts = groups_.shards.ranks();
    const auto add = [&](const UnitWork& unit, bool is_root) {
      const UnitBytes bytes = bytes_of(unit, is_root, parts, how);
      CollectiveCost gather =
          collective_cost(OpKind::kAllGather, bytes.gathered, groups_.shards, cluster);
      sent_gather_.push_back(sent_bytes(OpKind::kAllGather, bytes.gathered, groups_.shards));
      if (bytes.vectors > 0) {
        const CollectiveCost more =
            collective_cost(OpKind::kAllGather, bytes.vectors, groups_.shards, cluster);
        gather.link += more.link;
        gather.cpu += more.cpu;
      }
      gather_.push_back(gather);
      gathered_bytes_.push_back(static_cast<int64_t>(bytes.gathered));
      reduce_.push_back(
          collective_cost(OpKind::kReduceScatter, bytes.reduced, groups_.shards, cluster));
      sent_reduce_.push_back(sent_bytes(OpKind::kReduceScatter, bytes.reduced, groups_.shards));
      const double part = bytes.reduced / static_cast<double>(parts);
      replicate_.push_back(collective_cost(OpKind::kAllReduce, part, groups_.replicas, cluster));
      sent_replicate_.push_back(sent_bytes(OpKind::kAllReduce, part, groups_.replicas));
    };
    for (const UnitWork& unit : work.units) add(unit, false);
    add(work.root, true);
    root_ = work.units.size();
    // Groups within hosts and between them use different links.
    if (groups_.shards.hosts == 1 && groups_.replicas.hosts > 1) between_ = &replica_queue_;
  }

  SimulatedStep run(const Cluster& cluster) {
    const double shards = static_cast<double>(groups_.shards.ranks());
    for (int64_t pass = 0; pass < work_.micro_batches; ++pass) {
      const bool is_last = pass + 1 == work_.micro_batches;
      forward(pass);
      backward(is_last || !accumulates(), is_last);
    }
    finish();
    SimulatedStep result;
    const double passes = work_.seconds(shards) - work_.update / shards;
    result.compute = work_.seconds(shards);
    result.straggling = passes * (slowest_ - 1);
    // Processor time of operations must be spent as well, however well it is placed.
    now_ = std::max(now_, passes * slowest_ + cpu_);
    result.seconds =
        now_ + work_.update / shards +
        collective_cost(OpKind::kAllReduce, sizeof(double), world_of(cluster), cluster).seconds();
    result.exposed = std::max(0.0, result.seconds - result.compute - result.straggling);
    result.sent_bytes = sent_;
    return result;
  }

 private:
  bool keeps_whole() const { return how_.strategy == ShardStrategy::kShardOptimizer; }
  bool gathers_again() const {
    return how_.strategy == ShardStrategy::kFullShard ||
           how_.strategy == ShardStrategy::kHybridShard;
  }
  bool accumulates() const { return how_.accumulates || keeps_whole(); }

  void gather(size_t unit) {
    if (is_here_[unit]) return;
    is_here_[unit] = true;
    arrives_[unit] = queue_.run(now_, gather_[unit]);
    cpu_ += gather_[unit].cpu;
    sent_ += sent_gather_[unit];
  }
  void wait_for(size_t unit) { now_ = std::max(now_, arrives_[unit]); }
  void compute(double seconds) { now_ += seconds * slowest_; }

  /// Begins to gather the unit after `unit`, and as many more as may be ahead.
  template <class Next>
  void gather_ahead(size_t unit, const Next& next) {
    int64_t ahead = 0;
    for (size_t each = next(unit); each != root_; each = next(each)) {
      const bool is_first = ahead == 0;
      ahead += gathered_bytes_[each];
      if (!is_first && !keeps_whole() && ahead > how_.prefetch_bytes) return;
      gather(each);
    }
  }

  void forward(int64_t pass) {
    if (pass == 0 || !keeps_whole()) {
      is_here_.assign(root_ + 1, false);
      arrives_.assign(root_ + 1, 0);
    }
    const auto next = [&](size_t unit) { return unit == root_ ? 0 : unit + 1; };
    gather(root_);
    if (root_ > 0) gather_ahead(root_, next);
    wait_for(root_);
    compute(work_.forward_before);
    for (size_t unit = 0; unit < root_; ++unit) {
      gather(unit);
      gather_ahead(unit, next);
      wait_for(unit);
      compute(work_.units[unit].forward);
      // The last is kept for backward, which begins with it.
      if (gathers_again() && unit + 1 < root_) is_here_[unit] = false;
    }
    compute(work_.root.forward);
  }

  void backward(bool reduces, bool is_last) {
    const auto next = [&](size_t unit) { return unit == 0 ? root_ : unit - 1; };
    compute(work_.root.backward);
    for (size_t unit = root_; unit-- > 0;) {
      gather(unit);
      gather_ahead(unit, next);
      wait_for(unit);
      compute(work_.units[unit].backward);
      if (reduces) reduce(unit, is_last);
    }
    compute(work_.backward_before);
    if (reduces) reduce(root_, is_last);
  }

  void reduce(size_t unit, bool is_last) {
    while (under_way_.size() >= kReductionsUnderWay) drain();
    under_way_.push_back({unit, queue_.run(now_, reduce_[unit]), is_last});
    cpu_ += reduce_[unit].cpu;
    sent_ += sent_reduce_[unit];
  }

  /// Waits for the oldest reduction; the sums of the step go on to the other replicas.
  void drain() {
    const Reduction oldest = under_way_.front();
    under_way_.pop_front();
    now_ = std::max(now_, oldest.end);
    if (!oldest.is_last || groups_.replicas.ranks() == 1) return;
    sums_end_ = std::max(sums_end_, between_->run(now_, replicate_[oldest.unit]));
    cpu_ += replicate_[oldest.unit].cpu;
    sent_ += sent_replicate_[oldest.unit];
  }

  void finish() {
    while (!under_way_.empty()) drain();
    now_ = std::max(now_, sums_end_);
  }

  struct Reduction {
    size_t unit;
    double end;
    bool is_last;
  };

  const StepWork& work_;
  const ShardingWork& how_;
  const ShardGroups groups_;
  const double slowest_;
  size_t root_ = 0;  ///< its index, after those of the units
  // By unit.
  std::vector<CollectiveCost> gather_, reduce_, replicate_;
  std::vector<double> sent_gather_, sent_reduce_, sent_replicate_;
  std::vector<int64_t> gathered_bytes_;
  std::vector<bool> is_here_;    ///< gathered, or on its way
  std::vector<double> arrives_;  ///< if so
  Queue queue_;
  Queue replica_queue_;
  Queue* between_ = &queue_;  ///< of the sums of replicas
  std::deque<Reduction> under_way_;
  double now_ = 0;
  double sums_end_ = 0;
  double cpu_ = 0;
  double sent_ = 0;
};

}  // namespace

ShardGroups shard_groups(const Cluster& cluster, int64_t shard_size) {
  const int64_t local = cluster.ranks_per_host;
  const int64_t size = shard_size > 0 ? shard_size : cluster.ranks();
  const bool fits = size <= local ? local % size == 0 : size % local == 0;
  LS_CHECK(fits && cluster.ranks() % size == 0, ConfigError,
           "[plan] parallel.shard_size: expected a divisor of the {} ranks of a host, or whole "
           "hosts that divide all {}, got {} ranks. Set another.",
           local, cluster.hosts, size);
  if (size <= local) {
    return {.shards = {.hosts = 1, .ranks_per_host = size},
            .replicas = {.hosts = cluster.hosts, .ranks_per_host = local / size, .sharing = size}};
  }
  const int64_t hosts = size / local;
  return {
      .shards = {.hosts = hosts, .ranks_per_host = local},
      .replicas = {
          .hosts = cluster.hosts / hosts, .ranks_per_host = 1, .sharing = local, .stride = hosts}};
}

SimulatedStep simulate_sharded(const StepWork& work, const Cluster& cluster,
                               const ShardingWork& sharding) {
  return ShardedStep(work, cluster, sharding).run(cluster);
}

}  // namespace lockstep::dist
