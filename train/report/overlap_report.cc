#include "train/report/overlap_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/check.h"
#include "dist/group/agreement.h"
#include "train/report/step_line.h"

namespace lockstep::train {

namespace {

using OrderedJson = nlohmann::ordered_json;

/// Returns by bucket the seconds of this rank's fastest transfer; infinity if none was seen, since
/// clocks of ranks agree only up to the time of a message.
std::vector<double> fastest_transfers(dist::ProcessGroup& group,
                                      std::span<const StepOverlap> steps) {
  const size_t buckets = steps[0].bytes.size();
  std::vector<double> launched;  // on all ranks, by step and bucket
  for (const StepOverlap& step : steps) {
    launched.insert(launched.end(), step.launched.begin(), step.launched.end());
  }
  dist::largest_of(group, launched);
  std::vector<double> fastest(buckets, std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < steps.size(); ++i) {
    double link_free = 0;
    for (size_t b = 0; b < buckets; ++b) {
      const double done = steps[i].done[b];
      const double seconds = done - std::max(launched[i * buckets + b], link_free);
      if (seconds > 0) fastest[b] = std::min(fastest[b], seconds);
      link_free = std::max(link_free, done);
    }
  }
  return fastest;
}

/// The step whose duration on its slowest rank is the median, and that rank.
std::pair<size_t, int> choose_step(dist::ProcessGroup& group, std::span<const StepOverlap> steps) {
  std::vector<double> own;
  for (const StepOverlap& step : steps) own.push_back(step.seconds);
  const auto by_rank = dist::all_gather_values(group, own);
  const auto slowest = [&](size_t step) {
    return std::ranges::max_element(by_rank, {},
                                    [&](const std::vector<double>& rank) { return rank[step]; });
  };
  std::vector<size_t> order(steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t step) { return (*slowest(step))[step]; });
  const size_t median = order[order.size() / 2];
  return {median, static_cast<int>(slowest(median) - by_rank.begin())};
}

/// The times of a step and the transfers alone as numbers, and back.
std::vector<double> packed(const StepOverlap& step, std::span<const double> alone) {
  std::vector<double> values = {step.seconds, step.backward_end, step.exposed};
  for (const auto* list :
       {&step.ready, &step.launched, &step.done, &step.gather_wait, &step.gather_late}) {
    values.insert(values.end(), list->begin(), list->end());
  }
  values.insert(values.end(), alone.begin(), alone.end());
  return values;
}

/// `report.step` has the right numbers of buckets and units.
void unpack(std::span<const double> values, OverlapReport& report) {
  StepOverlap& step = report.step;
  step.seconds = values[0];
  step.backward_end = values[1];
  step.exposed = values[2];
  values = values.subspan(3);
  for (auto* list :
       {&step.ready, &step.launched, &step.done, &step.gather_wait, &step.gather_late}) {
    std::copy_n(values.begin(), list->size(), list->begin());
    values = values.subspan(list->size());
  }
  for (const double seconds : values) {
    report.alone.push_back(std::isfinite(seconds) ? std::optional(seconds) : std::nullopt);
  }
}

OrderedJson ms_or_null(std::optional<double> seconds) {
  return seconds ? OrderedJson(*seconds * 1e3) : OrderedJson(nullptr);
}

std::string bucket_name(const OverlapReport& report, size_t bucket) {
  return fmt::format("bucket {} of {} ({})", bucket + 1, report.step.bytes.size(),
                     format_bytes(static_cast<uint64_t>(report.step.bytes[bucket])));
}

}  // namespace

int64_t OverlapReport::bytes() const {
  return std::accumulate(step.bytes.begin(), step.bytes.end(), int64_t{0});
}

int64_t OverlapReport::gradient_bytes() const {
  if (contents.empty()) return bytes();
  int64_t sum = 0;
  for (const dist::BucketContent& content : contents) sum += content.gradient_bytes;
  return sum;
}

std::vector<double> OverlapReport::exposed() const {
  const double wait_end = step.backward_end + step.exposed;
  std::vector<double> result;
  double before = step.backward_end;
  for (const double done : step.done) {
    const double end = std::clamp(done, before, std::max(before, wait_end));
    result.push_back(end - before);
    before = end;
  }
  if (!result.empty()) result.back() += std::max(0.0, wait_end - before);
  return result;
}

std::vector<dist::Exposure> OverlapReport::causes() const {
  std::vector<dist::MeasuredBucket> buckets;
  for (size_t b = 0; b < step.bytes.size(); ++b) {
    buckets.push_back({.ready = step.ready[b],
                       .all_ready = all_ready[b],
                       .done = step.done[b],
                       .alone = alone[b].value_or(0)});
  }
  std::vector<dist::Exposure> result = dist::explain_exposure(buckets, step.backward_end);
  const std::vector<double> waits = exposed();
  for (size_t b = 0; b < result.size(); ++b) {
    if (waits[b] == 0) {
      result[b] = dist::Exposure::kHidden;
    } else if (result[b] == dist::Exposure::kHidden) {
      result[b] = dist::Exposure::kProcessor;  // its sum was there, but the rank did not go on
    }
  }
  return result;
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
  LS_ASSERT(!steps.empty());
  OverlapReport report;
  report.name = std::move(name);
  report.ranks = group.size();
  report.steps = std::ssize(steps);
  const auto [index, rank] = choose_step(group, steps);
  const StepOverlap& own = steps[index];
  report.rank = rank;
  report.step = own;
  const std::vector<double> alone = fastest_transfers(group, steps);
  const auto by_rank = dist::all_gather_values(group, packed(own, alone));
  unpack(by_rank[static_cast<size_t>(rank)], report);
  for (size_t b = 0; b < own.bytes.size(); ++b) {
    const auto ready = [&](const std::vector<double>& values) { return values[3 + b]; };
    const auto last = std::ranges::max_element(by_rank, {}, ready);
    report.all_ready.push_back(ready(*last));
    report.last_rank.push_back(static_cast<int>(last - by_rank.begin()));
  }
  report.alone_from = "estimated: the bucket's fastest transfer in these steps";
  return report;
}

const char* cause_of_gather(const OverlapReport& report, size_t unit) {
  constexpr double kNoWait = 50e-6;  // waiting of less than this is the cost of asking
  const double wait = report.step.gather_wait[unit];
  if (wait < kNoWait) return "hidden";
  return report.step.gather_late[unit] > wait / 2 ? "begun when it was needed" : "slow link";
}

std::vector<std::string> cause_texts(const OverlapReport& report) {
  std::vector<std::string> texts;
  for (const dist::Exposure cause : report.causes()) {
    texts.emplace_back(dist::name(cause));
    if (cause != dist::Exposure::kSlowRank) continue;
    texts.back() += fmt::format(" (rank {} was ready last)", report.last_rank[texts.size() - 1]);
  }
  return texts;
}

std::vector<std::string> overlap_summary(const OverlapReport& report) {
  const StepOverlap& step = report.step;
  std::vector<std::string> lines = {fmt::format(
      "{:.1f} of {:.1f} ms a step waited for other ranks' gradients ({:.1f} %): rank {}, the "
      "slowest, in the median of the last {} steps",
      step.exposed * 1e3, step.seconds * 1e3, 100 * step.exposed / step.seconds, report.rank,
      report.steps)};
  const std::vector<double> waits = report.exposed();
  const auto worst = std::ranges::max_element(waits);
  if (worst == waits.end() || *worst == 0) {
    lines.emplace_back("all buckets came before backward ended");
    return lines;
  }
  const auto bucket = static_cast<size_t>(worst - waits.begin());
  lines.push_back(fmt::format("most for {}, {:.1f} ms: {}", bucket_name(report, bucket),
                              *worst * 1e3, cause_texts(report)[bucket]));
  return lines;
}

OverlapTimeline overlap_timeline(const OverlapReport& report) {
  const StepOverlap& step = report.step;
  OverlapTimeline timeline{
      .title = fmt::format("{} on {} ranks: rank {}, the slowest, in the median of {} steps",
                           report.name, report.ranks, report.rank, report.steps),
      .backward_end = step.backward_end * 1e3,
      .wait_end = (step.backward_end + step.exposed) * 1e3,
      .step_end = step.seconds * 1e3,
      .buckets = {}};
  const std::vector<double> waits = report.exposed();
  const std::vector<std::string> causes = cause_texts(report);
  double link_free = 0;
  for (size_t b = 0; b < step.bytes.size(); ++b) {
    // The transfer begins when all ranks have the bucket and the link is free.
    const double begin =
        std::min(std::max({step.launched[b], report.all_ready[b], link_free}), step.done[b]);
    OverlapTimeline::Bucket& bucket = timeline.buckets.emplace_back();
    bucket = {.bytes = step.bytes[b],
              .ready = step.ready[b] * 1e3,
              .begin = begin * 1e3,
              .done = step.done[b] * 1e3,
              .exposed = waits[b] * 1e3,
              .cause = causes[b]};
    if (!report.contents.empty()) {
      bucket.first = report.contents[b].first;
      bucket.last = report.contents[b].last;
    }
    link_free = std::max(link_free, step.done[b]);
  }
  return timeline;
}

std::string overlap_json(const OverlapReport& report) {
  const StepOverlap& step = report.step;
  OrderedJson json = {{"config", report.name},
                      {"ranks", report.ranks},
                      {"steps", report.steps},
                      {"rank", report.rank},
                      {"gradient_bytes", report.gradient_bytes()},
                      {"reduced_bytes", report.bytes()}};
  for (const auto& [name, value] : report.more) json[name] = value;
  json["step_ms"] = step.seconds * 1e3;
  json["backward_ms"] = step.backward_end * 1e3;
  json["exposed_comm_ms"] = step.exposed * 1e3;
  if (!report.contradiction.empty()) json["contradiction"] = report.contradiction;
  json["sizes"] = report.sizes;
  json["alone_from"] = report.alone_from;
  const std::vector<dist::Exposure> causes = report.causes();
  const std::vector<double> waits = report.exposed();
  OrderedJson& buckets = json["buckets"] = OrderedJson::array();
  for (size_t b = 0; b < step.bytes.size(); ++b) {
    OrderedJson& bucket = buckets.emplace_back();
    if (!report.contents.empty()) {
      const dist::BucketContent& content = report.contents[b];
      bucket["first"] = content.first;
      bucket["last"] = content.last;
      bucket["gradient_bytes"] = content.gradient_bytes;
    }
    bucket["bytes"] = step.bytes[b];
    bucket["ready_ms"] = step.ready[b] * 1e3;
    bucket["all_ready_ms"] = report.all_ready[b] * 1e3;
    bucket["last_rank"] = report.last_rank[b];
    bucket["launched_ms"] = step.launched[b] * 1e3;
    bucket["done_ms"] = step.done[b] * 1e3;
    bucket["alone_ms"] = ms_or_null(report.alone[b]);
    bucket["exposed_ms"] = waits[b] * 1e3;
    bucket["cause"] = dist::name(causes[b]);
    if (b < report.unit_of_bucket.size()) bucket["unit"] = report.units[report.unit_of_bucket[b]];
  }
  if (report.units.empty()) return json.dump();
  json["gather_wait_ms"] = step.gathers() * 1e3;
  OrderedJson& gathers = json["gathers"] = OrderedJson::array();
  for (size_t unit = 0; unit < step.gather_wait.size(); ++unit) {
    gathers.push_back({{"unit", report.units[unit]},
                       {"bytes", report.unit_bytes[unit]},
                       {"exposed_ms", step.gather_wait[unit] * 1e3},
                       {"cause", cause_of_gather(report, unit)}});
  }
  return json.dump();
}

}  // namespace lockstep::train
