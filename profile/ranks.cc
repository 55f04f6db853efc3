#include "profile/ranks.h"

#include <algorithm>
#include <map>

#include "core/base/check.h"

namespace lockstep::profile {

namespace {

/// The beginning in rank 0's wall clock.
int64_t common_begin(const Profile& profile) {
  return profile.begin_unix_ns - profile.rank.clock_offset_ns;
}

/// Milliseconds of each step that a rank did not wait for others.
std::map<int64_t, double> work_of_steps(const Profile& profile) {
  std::map<int64_t, double> ms;
  size_t thread = 0;
  for (const ProfileSpan& span : profile.spans) {
    if (span.kind != SpanKind::kStep) continue;
    thread = span.thread;
    ms[span.step] += static_cast<double>(span.duration_ns) / 1e6;
  }
  for (const ProfileSpan& span : profile.spans) {
    const bool waits = span.kind == SpanKind::kWait && span.name == kWaitForRanks;
    if (waits && span.thread == thread && ms.contains(span.step)) {
      ms[span.step] -= static_cast<double>(span.duration_ns) / 1e6;
    }
  }
  return ms;
}

}  // namespace

void align(std::vector<Profile>& profiles) {
  if (profiles.empty()) return;
  const int64_t begin = std::ranges::min(profiles, {}, common_begin).begin_unix_ns -
                        std::ranges::min(profiles, {}, common_begin).rank.clock_offset_ns;
  for (Profile& profile : profiles) {
    const int64_t later = common_begin(profile) - begin;
    for (ProfileSpan& span : profile.spans) span.begin_ns += later;
    profile.duration_ns += later;
    profile.begin_unix_ns = begin;
    profile.rank.clock_offset_ns = 0;
  }
}

std::vector<StepOfRanks> steps_of_ranks(const std::vector<Profile>& profiles) {
  std::map<int64_t, std::vector<std::pair<double, int>>> ranks_of;
  for (const Profile& profile : profiles) {
    for (const auto& [step, ms] : work_of_steps(profile)) {
      ranks_of[step].emplace_back(ms, profile.rank.rank);
    }
  }
  std::vector<StepOfRanks> steps;
  for (const auto& [step, ranks] : ranks_of) {
    if (ranks.size() != profiles.size()) continue;
    const auto [fastest, slowest] = std::ranges::minmax(ranks);
    steps.push_back({step, slowest.second, slowest.first, fastest.first});
  }
  return steps;
}

std::string steps_text(const std::vector<StepOfRanks>& steps) {
  std::string text;
  for (const StepOfRanks& step : steps) {
    text += fmt::format("step {}: rank {} worked longest, {:.2f} ms; the quickest {:.2f} ms\n",
                        step.step + 1, step.slowest, step.slowest_ms, step.fastest_ms);
  }
  return text;
}

}  // namespace lockstep::profile
