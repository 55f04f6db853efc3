#include "profile/call_time.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/base/error.h"
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

/// A driver blocks at about a thousand calls.
constexpr int64_t kMostQueued = 500;

/// Seconds that each of so many calls takes, queued together.
double seconds_a_call(Device device, int64_t calls, FunctionRef<void()> call) {
  const Clock::time_point start = Clock::now();
  for (int64_t i = 0; i < calls; ++i) call();
  current_stream(device).synchronize();
  return seconds_since(start) / static_cast<double>(calls);
}

}  // namespace

double call_seconds(Device device, double seconds, FunctionRef<void()> call) {
  (void)seconds_a_call(device, 1, call);
  const double once = seconds_a_call(device, 1, call);
  const auto calls = std::clamp<int64_t>(static_cast<int64_t>(seconds / 3 / once), 1, 1000);
  double best = once;
  for (int i = 0; i < 3; ++i) best = std::min(best, seconds_a_call(device, calls, call));
  return best;
}

TimedCall time_largest(Device device, double seconds, std::span<const int64_t> sizes,
                       double long_call,
                       const std::function<std::function<void()>(int64_t size)>& make) {
  TimedCall timed;
  for (const int64_t size : sizes) {
    try {
      std::function<void()> call = make(size);
      (void)seconds_a_call(device, 1, call);  // loads kernels and libraries
      timed.seconds = seconds_a_call(device, 1, call);
      timed.call = std::move(call);
      timed.size = size;
    } catch (const OutOfMemoryError&) {
      if (timed.call == nullptr) throw;
      break;
    }
    if (timed.seconds > long_call) break;
  }
  // The best of three rounds, or of as many as there is time for where one call takes longer.
  const auto calls = std::clamp<int64_t>(
      static_cast<int64_t>(seconds / 3 / std::max(timed.seconds, 1e-9)), 1, kMostQueued);
  const Clock::time_point start = Clock::now();
  for (int round = 0; round < 3 && seconds_since(start) < seconds; ++round) {
    timed.seconds = std::min(timed.seconds, seconds_a_call(device, calls, timed.call));
  }
  return timed;
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
