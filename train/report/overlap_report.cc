#include "train/report/overlap_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "train/report/step_line.h"

namespace lockstep::train {

namespace {

using OrderedJson = nlohmann::ordered_json;

/// Returns the seconds of each bucket's fastest transfer.
std::vector<double> fastest_transfers(dist::ProcessGroup& group,
                                      std::span<const StepOverlap> steps) {
  std::vector<double> fastest(steps[0].bytes.size(), std::numeric_limits<double>::infinity());
  for (const StepOverlap& own : steps) {
    const StepOverlap latest = latest_of_ranks(group, own);
    double link_free = 0;
    for (size_t b = 0; b < fastest.size(); ++b) {
      const double begin = std::max(latest.launched[b], link_free);
      fastest[b] = std::min(fastest[b], std::max(own.done[b] - begin, 0.0));
      link_free = std::max(link_free, own.done[b]);
    }
  }
  return fastest;
}

/// Waiting of less than this is the cost of asking.
constexpr double kNoWait = 50e-6;

/// Why a unit's parameters were waited for.
const char* cause_of_wait(double wait, double late) {
  if (wait < kNoWait) return "hidden";
  return late > wait / 2 ? "begun when it was needed" : "slow link";
}

double exposed(const StepOverlap& step, size_t bucket) {
  return std::max(0.0, step.done[bucket] - step.backward_end);
}

}  // namespace

int64_t OverlapReport::bytes() const {
  return std::accumulate(own.bytes.begin(), own.bytes.end(), int64_t{0});
}

std::vector<dist::Exposure> OverlapReport::causes() const {
  std::vector<dist::MeasuredBucket> buckets;
  for (size_t b = 0; b < own.bytes.size(); ++b) {
    buckets.push_back({.ready = own.ready[b],
                       .all_ready = latest.ready[b],
                       .done = own.done[b],
                       .alone = alone[b]});
  }
  return dist::explain_exposure(buckets, own.backward_end);
}

std::vector<double> OverlapReport::added_waits() const {
  std::vector<double> waits;
  double before = own.backward_end;
  for (const double done : own.done) {
    waits.push_back(std::max(0.0, done - before));
    before = std::max(before, done);
  }
  return waits;
}

void add_units(OverlapReport& report, const dist::ShardedModel& sharded) {
  for (size_t unit = 0; unit < sharded.unit_count(); ++unit) {
    report.units.push_back(sharded.unit_name(unit));
    report.unit_bytes.push_back(sharded.unit_bytes(unit));
  }
  report.unit_of_bucket = sharded.reduced_units();
  report.sizes = fmt::format("{} units of a sharded model", report.units.size());
}

std::string sizes_of_buckets(const dist::Reducer& reducer) {
  if (reducer.choice()) return "chosen: " + dist::describe(*reducer.choice());
  return fmt::format("{} buckets of sizes as configured", reducer.plan().buckets.size());
}

OverlapReport overlap_report(dist::ProcessGroup& group, std::span<const StepOverlap> steps,
                             std::string name) {
  OverlapReport report;
  report.name = std::move(name);
  report.ranks = group.size();
  report.steps = std::ssize(steps);
  report.own = median_step(steps);
  report.latest = latest_of_ranks(group, report.own);
  report.alone = fastest_transfers(group, steps);
  report.alone_from = "estimated: the bucket's fastest transfer in these steps";
  return report;
}

std::vector<std::string> overlap_summary(const OverlapReport& report) {
  const StepOverlap& step = report.latest;
  std::vector<std::string> lines = {fmt::format(
      "{:.1f} of {:.1f} ms a step waited for other ranks' gradients ({:.1f} %), median "
      "of the last {}",
      step.exposed * 1e3, step.seconds * 1e3, 100 * step.exposed / step.seconds, report.steps)};
  const std::vector<double> waits = report.added_waits();
  const auto worst = std::ranges::max_element(waits);
  if (worst == waits.end() || *worst == 0) {
    lines.emplace_back("all buckets came before backward ended");
    return lines;
  }
  const auto bucket = static_cast<size_t>(worst - waits.begin());
  lines.push_back(fmt::format("most for bucket {} of {} ({}), {:.1f} ms on rank 0: {}", bucket + 1,
                              waits.size(),
                              format_bytes(static_cast<uint64_t>(report.own.bytes[bucket])),
                              *worst * 1e3, dist::name(report.causes()[bucket])));
  return lines;
}

OverlapTimeline overlap_timeline(const OverlapReport& report) {
  const StepOverlap& own = report.own;
  OverlapTimeline timeline{.title = fmt::format("{}, {} ranks", report.name, report.ranks),
                           .backward_end = own.backward_end * 1e3,
                           .wait_end = (own.backward_end + own.exposed) * 1e3,
                           .step_end = own.seconds * 1e3,
                           .buckets = {}};
  const std::vector<dist::Exposure> causes = report.causes();
  for (size_t b = 0; b < own.bytes.size(); ++b) {
    timeline.buckets.push_back({.bytes = own.bytes[b],
                                .ready = own.ready[b] * 1e3,
                                .done = own.done[b] * 1e3,
                                .cause = dist::name(causes[b])});
  }
  return timeline;
}

std::string overlap_json(const OverlapReport& report) {
  OrderedJson json = {{"config", report.name},
                      {"ranks", report.ranks},
                      {"steps", report.steps},
                      {"gradient_bytes", report.bytes()}};
  for (const auto& [name, value] : report.more) json[name] = value;
  json["step_ms"] = report.latest.seconds * 1e3;
  json["exposed_comm_ms"] = report.latest.exposed * 1e3;
  json["sizes"] = report.sizes;
  json["alone_from"] = report.alone_from;
  const std::vector<dist::Exposure> causes = report.causes();
  OrderedJson& buckets = json["buckets"] = OrderedJson::array();
  for (size_t b = 0; b < report.own.bytes.size(); ++b) {
    buckets.push_back({{"bytes", report.own.bytes[b]},
                       {"ready_ms", report.own.ready[b] * 1e3},
                       {"all_ready_ms", report.latest.ready[b] * 1e3},
                       {"launched_ms", report.own.launched[b] * 1e3},
                       {"done_ms", report.own.done[b] * 1e3},
                       {"alone_ms", report.alone[b] * 1e3},
                       {"exposed_ms", exposed(report.own, b) * 1e3},
                       {"cause", dist::name(causes[b])}});
    if (b < report.unit_of_bucket.size()) {
      buckets.back()["unit"] = report.units[report.unit_of_bucket[b]];
    }
  }
  if (report.units.empty()) return json.dump();
  json["gather_wait_ms"] = report.latest.gathers() * 1e3;
  OrderedJson& gathers = json["gathers"] = OrderedJson::array();
  for (size_t u = 0; u < report.own.gather_wait.size(); ++u) {
    const double wait = report.own.gather_wait[u];
    gathers.push_back({{"unit", report.units[u]},
                       {"bytes", report.unit_bytes[u]},
                       {"exposed_ms", wait * 1e3},
                       {"cause", cause_of_wait(wait, report.own.gather_late[u])}});
  }
  return json.dump();
}

}  // namespace lockstep::train
