#include "launcher/launch/comebacks.h"

#include <fmt/format.h>

#include <utility>

namespace lockstep::launcher {

std::string Comebacks::after(const LaunchFailure& failure, int64_t saved, Clock::time_point now) {
  if (options_.max_restarts == 0) return "";
  const auto found =
      ranks_.try_emplace(failure.rank, Rank{.policy = {options_, 1, {}}, .saved = saved}).first;
  Rank& rank = found->second;
  const RestartPolicy::Decision next =
      rank.policy.after(failure, saved > std::exchange(rank.saved, saved));
  if (!next.again) {
    return fmt::format("rank {} stays out: it was started again {} time{} without a new checkpoint",
                       failure.rank, options_.max_restarts, options_.max_restarts == 1 ? "" : "s");
  }
  rank.due = now + std::chrono::ceil<std::chrono::milliseconds>(
                       std::chrono::duration<double>(next.delay_seconds));
  return fmt::format("rank {} is started again in {} s, to join the others ({} of {})",
                     failure.rank, next.delay_seconds, next.number, options_.max_restarts);
}

std::optional<Comebacks::Clock::time_point> Comebacks::next() const {
  std::optional<Clock::time_point> first;
  for (const auto& [number, rank] : ranks_) {
    if (rank.due && (!first || *rank.due < *first)) first = rank.due;
  }
  return first;
}

std::vector<int> Comebacks::take_due(Clock::time_point now) {
  std::vector<int> due;
  for (auto& [number, rank] : ranks_) {
    if (!rank.due || now < *rank.due) continue;
    rank.due.reset();
    due.push_back(number);
  }
  return due;
}

}  // namespace lockstep::launcher
