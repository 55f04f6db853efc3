#include "train/report/run_comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/check.h"

namespace lockstep::train {

bool same_bits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

namespace {

using Difference = RunComparison::Difference;
using Missing = RunComparison::Missing;
using Steps = std::map<int64_t, const MetricsRecord*>;

std::optional<Difference> difference(const MetricsRecord& a, const MetricsRecord& b,
                                     Difference::Between between) {
  const auto compare = [&](const char* quantity, const std::optional<double>& of_a,
                           const std::optional<double>& of_b) -> std::optional<Difference> {
    if (!of_a || !of_b || same_bits(*of_a, *of_b)) return std::nullopt;
    return Difference{a.step, quantity, *of_a, *of_b, between};
  };
  if (auto found = compare("loss", a.loss, b.loss)) return found;
  if (auto found = compare("grad_norm", a.grad_norm, b.grad_norm)) return found;
  return compare("val_loss", a.val_loss, b.val_loss);
}

void keep_first(std::optional<Difference>& first, std::optional<Difference> found) {
  if (found && (!first || found->step < first->step)) first = found;
}

/// Indexes the first record of every step and compares the repeats with it.
Steps index(std::span<const MetricsRecord> records, Difference::Between between,
            std::optional<Difference>& first) {
  Steps steps;
  for (const MetricsRecord& record : records) {
    const auto [place, is_new] = steps.emplace(record.step, &record);
    if (!is_new) keep_first(first, difference(*place->second, record, between));
  }
  return steps;
}

std::optional<Missing> first_missing(const Steps& present, const Steps& absent, bool from_a) {
  for (const auto& [step, record] : present) {
    if (!absent.contains(step)) return Missing{step, from_a};
  }
  return std::nullopt;
}

std::string range(const Difference& difference) {
  const double distance = std::abs(difference.a - difference.b);
  const double scale = std::max(std::abs(difference.a), std::abs(difference.b));
  return std::isfinite(distance) && scale > 0 ? fmt::format("{:.1e} relative", distance / scale)
                                              : "not both finite";
}

}  // namespace

int64_t RunComparison::first_differing_step() const {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  return std::min(difference ? difference->step : kNone, missing ? missing->step : kNone);
}

RunComparison compare_runs(std::span<const MetricsRecord> a, std::span<const MetricsRecord> b) {
  RunComparison result;
  const Steps steps_a = index(a, Difference::kRepeatsInA, result.difference);
  const Steps steps_b = index(b, Difference::kRepeatsInB, result.difference);
  result.steps_of_a = std::ssize(steps_a);
  result.steps_of_b = std::ssize(steps_b);
  for (const auto& [step, record] : steps_a) {
    const auto other = steps_b.find(step);
    if (other == steps_b.end()) continue;
    ++result.common_steps;
    keep_first(result.difference, difference(*record, *other->second, Difference::kRuns));
  }
  result.missing = first_missing(steps_a, steps_b, false);
  const std::optional<Missing> from_a = first_missing(steps_b, steps_a, true);
  if (from_a && (!result.missing || from_a->step < result.missing->step)) result.missing = from_a;
  return result;
}

std::string describe(const RunComparison& comparison, const std::string& a, const std::string& b) {
  if (comparison.identical()) {
    return fmt::format("identical: {} steps, bit for bit\n", comparison.common_steps);
  }
  std::string text = fmt::format("first differing step: {}\n", comparison.first_differing_step());
  if (comparison.difference) {
    const Difference& found = *comparison.difference;
    const bool of_a = found.between == Difference::kRepeatsInA;
    const std::string first = found.between == Difference::kRuns ? a : of_a ? a : b;
    const std::string second =
        found.between == Difference::kRuns ? b : fmt::format("{} again", first);
    text += fmt::format("step {}: {} differs ({})\n", found.step, found.quantity, range(found));
    const size_t width = std::max(first.size(), second.size());
    text +=
        fmt::format("  {:<{}}  {}\n  {:<{}}  {}\n", first, width, found.a, second, width, found.b);
  }
  if (comparison.missing) {
    const Missing& missing = *comparison.missing;
    text += fmt::format("step {}: {} does not have it ({} steps in {}, {} in {}, {} in both{})\n",
                        missing.step, missing.from_a ? a : b, comparison.steps_of_a, a,
                        comparison.steps_of_b, b, comparison.common_steps,
                        comparison.difference ? "" : ", identical");
  }
  return text;
}

}  // namespace lockstep::train
