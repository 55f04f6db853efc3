#include "profile/call_time.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/dispatch/cpu_fallback.h"
#include "core/tensor/stream.h"

namespace lockstep::profile {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Calls per round; a GPU's driver queues about a thousand launches before it blocks the caller.
constexpr int kQueued = 200;

}  // namespace

double call_seconds(Device device, double seconds, FunctionRef<void()> call) {
  const auto round = [&](int64_t calls) {
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) call();
    current_stream(device).synchronize();
    return seconds_since(start);
  };
  round(1);
  const double once = round(1);
  const auto calls = std::clamp<int64_t>(static_cast<int64_t>(seconds / 3 / once), 1, 1000);
  double best = once;
  for (int i = 0; i < 3; ++i) best = std::min(best, round(calls) / static_cast<double>(calls));
  return best;
}

double queue_seconds(Device device, int rounds, FunctionRef<void()> call) {
  std::vector<double> times;
  for (int i = -1; i < rounds; ++i) {
    const Clock::time_point start = Clock::now();
    for (int j = 0; j < kQueued; ++j) call();
    const double taken = seconds_since(start);
    current_stream(device).synchronize();
    if (i >= 0) times.push_back(taken / kQueued);  // the first warms up
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

int64_t all_cpu_fallbacks() {
  int64_t calls = 0;
  for (const auto& [op, of_it] : cpu_fallback_calls()) calls += of_it;
  return calls;
}

}  // namespace lockstep::profile
