#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/base/function_ref.h"

namespace lockstep {

/// How long a thread polls for what other threads will do before it sleeps.
///
/// A sleeping thread takes some 50 us to wake, so polling pays for waits up to a few times that,
/// but only on a core nobody else wants: a thread that polls there burns the time slice it will
/// need for its work, and on the core that those it waits for need. Nothing tells beforehand which
/// it is, so the limit follows what the waits before came to. Not thread-safe; each waiting thread
/// has one.
class PollLimit {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr Clock::duration kMost = std::chrono::microseconds(300);
  static constexpr Clock::duration kLeast = std::chrono::microseconds(5);
  /// While polling, a gap of this length in a thread's time means that another program had its
  /// core.
  static constexpr Clock::duration kLostCore = std::chrono::microseconds(500);

  Clock::duration value() const { return value_; }

  /// The thread slept, and the wait took `waited` in all. The limit doubles where polling up to
  /// kMost would have spared the sleep, and halves where it would not.
  void slept(Clock::duration waited, Clock::time_point now);
  /// The thread lost its core while polling. The limit stays at kLeast for 10 ms, and for twice the
  /// last time, up to 160 ms, where the core is lost again soon after.
  void lost_core(Clock::time_point now);

 private:
  Clock::duration value_ = kMost / 4;
  Clock::duration low_for_{};
  Clock::time_point low_until_{};
};

/// Waits by polling up to a PollLimit, then asleep. Not thread-safe.
class AdaptiveWait {
 public:
  /// Returns when `ready()` is true. `sleep()` may block until another thread, having made ready()
  /// true, wakes this one; it may return earlier. Makes no system call where polling suffices.
  void until(FunctionRef<bool()> ready, FunctionRef<void()> sleep);

 private:
  PollLimit limit_;
};

/// Blocks while `word` holds `value`, until a `wake_one` on it. May return without a reason.
void sleep_while(const std::atomic<uint32_t>& word, uint32_t value);
/// Wakes one thread that sleeps on `word`. Only the address is used: the word may be gone already.
void wake_one(const std::atomic<uint32_t>& word);

}  // namespace lockstep
