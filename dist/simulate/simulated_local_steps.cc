#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dist/local/block_codes.h"
#include "dist/local/fragments.h"
#include "dist/simulate/collective_cost.h"
#include "dist/simulate/simulated_step.h"
#include "dist/simulate/stragglers.h"

namespace lockstep::dist {

namespace {

/// The messages of an average of a fragment: with codes to the owners of its parts, and from them;
/// else one sum.
struct Average {
  bool has_codes = true;
  CollectiveCost there;
  CollectiveCost back;
  double sent = 0;  ///< bytes of a rank
};

Average average_of(std::span<const int64_t> elements, const Cluster& cluster, int bits) {
  const GroupShape world = world_of(cluster);
  const int64_t all = owned_elements(elements, cluster.ranks()) * cluster.ranks();
  Average average;
  if (bits == 32) {
    average.has_codes = false;
    const auto bytes = static_cast<double>(all) * sizeof(float);
    average.there = collective_cost(OpKind::kAllReduce, bytes, world, cluster);
    average.sent = sent_bytes(OpKind::kAllReduce, bytes, world);
    return average;
  }
  const auto bytes = static_cast<double>(coded_bytes(all, bits));
  // all_to_all: the bytes of a reduce_scatter, but no host adds up for its ranks.
  Cluster direct = cluster;
  direct.collectives = Collectives::kDirect;
  average.there = collective_cost(OpKind::kReduceScatter, bytes, world, direct);
  average.back = collective_cost(OpKind::kAllGather, bytes, world, cluster);
  average.sent = 2 * sent_bytes(OpKind::kAllGather, bytes, world);
  return average;
}

std::vector<Average> averages_of(const StepWork& work, const Cluster& cluster,
                                 const AveragingWork& averaging) {
  std::vector<int64_t> elements;
  for (const ParameterWork& each : work.parameters()) elements.push_back(each.elements);
  std::vector<Average> averages;
  size_t first = 0;
  for (const size_t end : fragment_ends(elements, averaging.fragments)) {
    averages.push_back(
        average_of(std::span(elements).subspan(first, end - first), cluster, averaging.bits));
    first = end;
  }
  return averages;
}

/// What LocalSgd::after_update does for a fragment behind a step.
enum class Act : uint8_t { kSend, kGather, kUse };
struct Event {
  int64_t step = 0;
  int64_t fragment = 0;
  Act act = Act::kSend;

  friend auto operator<=>(const Event&, const Event&) = default;
};

std::vector<Event> events_of(int64_t fragments, const AveragingWork& averaging, int64_t cycles) {
  std::vector<Event> events;
  const int64_t period = averaging.inner_steps;
  for (int64_t i = 0; i < fragments; ++i) {
    const int64_t since_start = steps_since_average(i, fragments, period, 0);
    const int64_t first = since_start == 0 ? period : period - since_start;
    for (int64_t cycle = 0; cycle < cycles; ++cycle) {
      const int64_t step = first + cycle * period;
      events.push_back({step, i, Act::kSend});
      events.push_back({step + averaging.delay_steps / 2, i, Act::kGather});
      events.push_back({step + averaging.delay_steps, i, Act::kUse});
    }
  }
  std::ranges::sort(events);
  return events;
}

/// Time of one rank, all of which do the same, and of the link.
class Timeline {
 public:
  Timeline(double step, std::vector<Average> averages)
      : step_(step), averages_(std::move(averages)), arrived_(averages_.size()) {}

  void pass(const Event& event) {
    compute_until(event.step);
    const auto i = static_cast<size_t>(event.fragment);
    if (event.act == Act::kSend) return send(i, averages_[i].there);
    if (event.act == Act::kGather && !averages_[i].has_codes) return;
    now_ = std::max(now_, arrived_[i]);
    if (event.act == Act::kGather) send(i, averages_[i].back);
  }
  void compute_until(int64_t step) {
    now_ += static_cast<double>(step - steps_) * step_;
    steps_ = step;
  }
  double now() const { return now_; }

 private:
  void send(size_t fragment, const CollectiveCost& cost) {
    now_ += cost.cpu;
    link_free_ = std::max(link_free_, now_) + cost.link;
    arrived_[fragment] = link_free_ + cost.latency;
  }

  double step_;
  std::vector<Average> averages_;
  std::vector<double> arrived_;
  double now_ = 0;
  double link_free_ = 0;
  int64_t steps_ = 0;
};

/// Seconds of a step in the mean over a period, when it has settled.
double mean_step(double step, const std::vector<Average>& averages,
                 const AveragingWork& averaging) {
  constexpr int64_t kToSettle = 3, kMeasured = 2;
  const int64_t period = averaging.inner_steps;
  Timeline timeline(step, averages);
  double begin = 0;
  bool has_begun = false;
  for (const Event& event : events_of(std::ssize(averages), averaging, kToSettle + kMeasured + 1)) {
    if (event.step > kToSettle * period && !has_begun) {
      timeline.compute_until(kToSettle * period);
      begin = timeline.now();
      has_begun = true;
    }
    if (event.step > (kToSettle + kMeasured) * period) break;
    timeline.pass(event);
  }
  timeline.compute_until((kToSettle + kMeasured) * period);
  return (timeline.now() - begin) / static_cast<double>(kMeasured * period);
}

}  // namespace

SimulatedStep simulate_local_steps(const StepWork& work, const Cluster& cluster,
                                   const AveragingWork& averaging) {
  SimulatedStep result;
  result.compute = work.seconds();
  if (cluster.ranks() == 1) {
    result.seconds = result.compute;
    return result;
  }
  // Every step tells all ranks the losses, so that its slowest rank is waited for.
  const CollectiveCost losses =
      collective_cost(OpKind::kAllReduce, sizeof(double), world_of(cluster), cluster);
  const double slowest = slowest_factor(cluster.stragglers, cluster.ranks(), cluster.hosts);
  result.straggling = result.compute * (slowest - 1);
  const std::vector<Average> averages = averages_of(work, cluster, averaging);
  result.seconds = mean_step(result.compute * slowest + losses.seconds(), averages, averaging);
  result.exposed = std::max(0.0, result.seconds - result.compute - result.straggling);
  for (const Average& each : averages) result.sent_bytes += each.sent;
  result.sent_bytes /= static_cast<double>(averaging.inner_steps);
  return result;
}

}  // namespace lockstep::dist
