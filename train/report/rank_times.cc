#include "train/report/rank_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <utility>

#include "core/base/check.h"

namespace lockstep::train {

namespace {

constexpr double kNoticeable = 0.05;  // of the step

/// The middle one of the ranks' numbers; of an even number of ranks the lower: of two ranks one is
/// compared with the other. `part` is a member of RankTimes.
template <class Part>
double usual(const RankComparison& comparison, Part part) {
  std::vector<double> values;
  for (const RankTimes& each : comparison.ranks) values.push_back(std::invoke(part, each));
  std::ranges::sort(values);
  return values[(values.size() - 1) / 2];
}

/// Microseconds are enough for a file that is read by people.
double rounded(double ms) { return std::round(ms * 1e3) / 1e3; }

bool all_ranks_are_there(const RankComparison& comparison) {
  for (size_t i = 0; i < comparison.ranks.size(); ++i) {
    if (std::cmp_not_equal(comparison.ranks[i].rank, i)) return false;
  }
  return true;
}

}  // namespace

const char* name(SlowReason reason) {
  constexpr const char* kNames[] = {"none", "compute", "data", "link",
                                    "another process on its cores"};
  return kNames[static_cast<size_t>(reason)];
}

SlowestRank slowest_of(const RankComparison& comparison) {
  LS_ASSERT(!comparison.ranks.empty());
  const RankTimes& slowest = *std::ranges::max_element(comparison.ranks, {}, &RankTimes::work_ms);
  const double least = kNoticeable * slowest.step_ms();
  const double more = slowest.work_ms() - usual(comparison, &RankTimes::work_ms);
  SlowestRank found{.rank = slowest.rank};
  if (std::max(more, slowest.exposed_ms) <= least) return found;
  if (slowest.exposed_ms >= more) {
    // What the last rank waits for is no other rank.
    found.reason = SlowReason::kLink;
    found.ms = slowest.exposed_ms;
    return found;
  }
  const auto more_of = [&](double RankTimes::*part) {
    return slowest.*part - std::max(0.0, usual(comparison, part));
  };
  found.reason = SlowReason::kCompute;
  if (more_of(&RankTimes::data_ms) > more / 2) {
    found.reason = SlowReason::kData;
  } else if (more_of(&RankTimes::core_ms) > more / 2) {
    found.reason = SlowReason::kCores;
  }
  found.ms = more;
  return found;
}

std::string slowest_text(const RankComparison& comparison) {
  const SlowestRank slowest = slowest_of(comparison);
  switch (slowest.reason) {
    case SlowReason::kCompute:
      return fmt::format("rank {} is the slowest: compute, {:.1f} ms a step more than others",
                         slowest.rank, slowest.ms);
    case SlowReason::kData:
      return fmt::format(
          "rank {} is the slowest: data, for which it waits {:.1f} ms a step longer than others",
          slowest.rank, slowest.ms);
    case SlowReason::kCores:
      return fmt::format(
          "rank {} is the slowest, by {:.1f} ms a step: another process, or other threads, on its "
          "cores",
          slowest.rank, slowest.ms);
    case SlowReason::kLink:
      return fmt::format(
          "the link: even rank {}, which works longest, waits {:.1f} ms a step for transfers",
          slowest.rank, slowest.ms);
    case SlowReason::kNone:
      break;
  }
  return "no rank is slower than the others";
}

std::string ranks_text(const RankComparison& comparison, size_t most) {
  if (comparison.ranks.size() < 2) return "";
  std::vector<RankTimes> shown = comparison.ranks;
  if (shown.size() > most) {
    std::ranges::stable_sort(shown, std::greater<>(), &RankTimes::work_ms);
    shown.resize(most);
  }
  const auto known = [](double ms) {
    return ms < 0 ? std::string("-") : fmt::format("{:.1f}", ms);
  };
  const SlowestRank slowest = slowest_of(comparison);
  std::string text =
      fmt::format("{:>6} {:>12} {:>12} {:>12} {:>12}   of a step, ms; mean of {}\n", "rank",
                  "compute", "other's core", "data", "other ranks", comparison.steps);
  for (const RankTimes& each : shown) {
    const bool is_slowest = each.rank == slowest.rank && slowest.reason != SlowReason::kNone;
    text += fmt::format("{:>6} {:>12.1f} {:>12} {:>12.1f} {:>12.1f}{}\n", each.rank,
                        each.compute_ms, known(each.core_ms), each.data_ms, each.exposed_ms,
                        is_slowest ? fmt::format("   {}", name(slowest.reason)) : "");
  }
  if (shown.size() < comparison.ranks.size()) {
    text += fmt::format("({} ranks more, which work for less time)\n",
                        comparison.ranks.size() - shown.size());
  }
  return text + slowest_text(comparison) + "\n";
}

RankComparison with_slowest(RankComparison comparison) {
  if (comparison.ranks.size() <= RankComparison::kMostRanks) return comparison;
  std::ranges::stable_sort(comparison.ranks, std::greater<>(), &RankTimes::work_ms);
  comparison.ranks.resize(RankComparison::kMostRanks);
  std::ranges::sort(comparison.ranks, {}, &RankTimes::rank);
  return comparison;
}

void add_to(JsonLine& line, const RankComparison& comparison) {
  const auto add = [&](const char* member, double RankTimes::*part) {
    std::vector<double> values;
    for (const RankTimes& each : comparison.ranks) values.push_back(rounded(each.*part));
    line.add(member, std::span<const double>(values));
  };
  line.add("rank_steps", comparison.steps);
  if (!all_ranks_are_there(comparison)) {
    std::vector<double> numbers;
    for (const RankTimes& each : comparison.ranks) numbers.push_back(each.rank);
    line.add("rank_numbers", std::span<const double>(numbers));
  }
  add("rank_compute_ms", &RankTimes::compute_ms);
  add("rank_data_wait_ms", &RankTimes::data_ms);
  add("rank_exposed_comm_ms", &RankTimes::exposed_ms);
  const bool is_known = std::ranges::any_of(
      comparison.ranks, [](const RankTimes& each) { return each.core_ms >= 0; });
  if (is_known) add("rank_core_wait_ms", &RankTimes::core_ms);
}

}  // namespace lockstep::train
