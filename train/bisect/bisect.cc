#include "train/bisect/bisect.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "train/bisect/replay_search.h"
#include "train/report/run_comparison.h"
#include "train/run/final_model.h"

namespace lockstep::train {
namespace {

void require_comparable(const RecordedRun& a, const RecordedRun& b) {
  const std::vector<std::string> fields = incomparable_fields(a, b);
  LS_CHECK(fields.empty(), ConfigError,
           "[bisect] {} and {} have no common ancestor: expected runs of one model, data and seed "
           "in the same micro-batches, got {}. Compare runs that differ in ranks, strategy, "
           "device, settings of the optimizer, or programs alone.",
           a.name, b.name, fmt::join(fields, ", "));
}

void check_programs(const RecordedRun& run, bool allowed, std::vector<std::string>& notes) {
  const std::string difference = difference_to_here(run);
  if (difference.empty()) return;
  LS_CHECK(allowed, CheckpointError,
           "[bisect] {} was not computed by a process like this one, so that its bits cannot be "
           "computed again: {}. Use that program on such a processor (LOCKSTEP_CPU_CAPABILITY, "
           "ONEDNN_MAX_CPU_ISA), or add --other-programs and see whether the steps repeat.",
           run.name, difference);
  notes.push_back(
      fmt::format("{} was computed by another program or processor: {}", run.name, difference));
}

/// What the bits of a run depend on besides its model and data.
std::string ranks_of(const RecordedRun& run) {
  if (replayed_ranks(run) == 1) return run.ranks == 1 ? "one rank" : "ranks with BITWISE";
  const config::RunConfig config = run.config();
  const config::ParallelConfig& parallel = config.parallel();
  std::string text = fmt::format("{} ranks with {}", run.ranks,
                                 config::ParallelConfig::Strategy_Name(parallel.strategy()));
  if (parallel.shard_size() > 0) text += fmt::format(" of {}", parallel.shard_size());
  if (parallel.has_bf16_compress()) text += ", bf16_compress";
  if (parallel.has_f16_compress()) text += ", f16_compress";
  if (parallel.bf16_reduce()) text += ", bf16_reduce";
  if (!run.hosts.empty()) text += fmt::format(", on hosts {}", fmt::join(run.hosts, ", "));
  return text;
}

void require_same_ranks(const RecordedRun& a, const RecordedRun& b) {
  if (replayed_ranks(a) == 1 && replayed_ranks(b) == 1) return;
  const std::string of_a = ranks_of(a), of_b = ranks_of(b);
  LS_CHECK(of_a == of_b, ConfigError,
           "[bisect] {} was computed by {}, and {} by {}: without reproducibility: BITWISE their "
           "sums are added in other orders, so that bits differ where nothing is wrong. Add "
           "--tolerance, for numbers that lie further apart than that.",
           a.name, of_a, b.name, of_b);
}

/// The first step of both whose loss or norm differs by more than `tolerance`; 0: none.
int64_t first_step_beyond(double tolerance, const RecordedRun& a, const RecordedRun& b) {
  const auto beyond = [&](std::optional<double> x, std::optional<double> y) {
    if (!x || !y || same_bits(*x, *y)) return false;
    return !(std::abs(*x - *y) <= tolerance * std::max(std::abs(*x), std::abs(*y)));
  };
  for (const MetricsRecord& in_a : a.steps) {
    const auto in_b = std::ranges::find(b.steps, in_a.step, &MetricsRecord::step);
    if (in_b == b.steps.end()) continue;
    if (beyond(in_a.loss, in_b->loss) || beyond(in_a.grad_norm, in_b->grad_norm)) return in_a.step;
  }
  return 0;
}

}  // namespace

Bisection bisect(const RecordedRun& a, const RecordedRun& b, const BisectOptions& options) {
  Bisection result;
  require_comparable(a, b);
  const RunComparison comparison = compare_runs(a.steps, b.steps);
  LS_CHECK(comparison.common_steps > 0, DataError,
           "[bisect] {} and {} have no step in common: expected metrics of the same steps.", a.name,
           b.name);
  if (comparison.difference) result.differing_step = comparison.difference->step;
  if (comparison.missing) {
    result.notes.push_back(fmt::format("{} has {} steps, {} has {}: {} are in both", a.name,
                                       comparison.steps_of_a, b.name, comparison.steps_of_b,
                                       comparison.common_steps));
  }
  result.identical = !comparison.difference && compare_weights(a.directory, b.directory).identical;
  const bool exact = options.tolerance <= 0;
  if (!exact) {
    result.with_tolerance = true;
    result.differing_step = first_step_beyond(options.tolerance, a, b);
    result.identical = result.differing_step == 0;
  }
  if (result.identical && !options.replay_equal) return result;
  check_programs(a, options.other_programs, result.notes);
  check_programs(b, options.other_programs, result.notes);
  for (const std::string& field : changed_fields(a, b)) {
    result.notes.push_back("the configs differ: " + field);
  }
  if (exact) require_same_ranks(a, b);
  ReplaySearch search(a, b, {.by_one_rank = !exact}, result);
  const int64_t last_of_both = std::min(a.steps.back().step, b.steps.back().step);
  const int64_t last = result.differing_step > 0 ? result.differing_step : last_of_both;
  exact ? search.run(last, result.identical)
        : search.run_within(options.tolerance, last, result.identical);
  return result;
}

}  // namespace lockstep::train
