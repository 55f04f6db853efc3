#pragma once

#include <chrono>
#include <cstdint>

namespace lockstep {

/// A cheap clock for spans: the processor's time-stamp counter where its rate is known to be
/// constant, which takes a third of the time of steady_clock, and steady_clock elsewhere. Its unit
/// is found by reading both clocks twice (TickClock).
inline uint64_t steady_ticks() noexcept {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

#if defined(__x86_64__)
namespace detail {
bool has_constant_tick_rate() noexcept;
/// False until the program's constructors have run.
extern const bool constant_tick_rate;
}  // namespace detail
inline uint64_t now_ticks() noexcept {
  // What <x86intrin.h> calls __rdtsc: that header would take 80 MB of each compilation.
  return detail::constant_tick_rate ? __builtin_ia32_rdtsc() : steady_ticks();
}
#else
inline uint64_t now_ticks() noexcept { return steady_ticks(); }
#endif

/// Converts ticks between two moments to nanoseconds of steady_clock.
class TickClock {
 public:
  /// Reads both clocks.
  struct Moment {
    uint64_t ticks = 0;
    int64_t steady_ns = 0;

    static Moment now() noexcept;
  };

  TickClock() = default;
  /// The rate is that between the two moments; the further apart, the more exact.
  TickClock(Moment begin, Moment end) noexcept;

  /// Nanoseconds of steady_clock, also for ticks outside the two moments.
  int64_t steady_ns(uint64_t ticks) const noexcept;

 private:
  Moment begin_;
  double ns_per_tick_ = 1;
};

}  // namespace lockstep
