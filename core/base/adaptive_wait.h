#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/base/function_ref.h"

namespace lockstep {

/// Decides how long a thread polls for a condition set by another thread before it sleeps.
///
/// A sleeping thread takes some 50 us to wake, so polling pays for waits up to a few times that,
/// but only on an otherwise idle core. On a contended core a polling thread burns the time slice
/// that it will need for its own work, or the core time of the threads that it waits for. The
/// thread cannot know this beforehand, so the limit follows the length of the previous waits. Not
/// thread-safe; each waiting thread has its own.
class PollLimit {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr Clock::duration kMost = std::chrono::microseconds(300);
  static constexpr Clock::duration kLeast = std::chrono::microseconds(5);
  /// A gap of this length between two clock reads of a polling thread means that the scheduler gave
  /// its core to another thread.
  static constexpr Clock::duration kLostCore = std::chrono::microseconds(500);

  Clock::duration value() const { return value_; }

  /// Call when the thread slept and the wait took `waited` in all. The limit doubles where polling
  /// up to kMost would have avoided the sleep, and halves where it would not have.
  void slept(Clock::duration waited, Clock::time_point now);
  /// Call when the thread lost its core while polling. The limit stays at kLeast for 10 ms. Each
  /// loss soon after the last doubles this time, up to 160 ms.
  void lost_core(Clock::time_point now);

 private:
  Clock::duration value_ = kMost / 4;
  Clock::duration low_for_{};
  Clock::time_point low_until_{};
};

/// Waits by polling up to a PollLimit and then sleeping. Not thread-safe.
class AdaptiveWait {
 public:
  /// Returns when `ready()` is true. `sleep()` may block until another thread, having made ready()
  /// true, wakes this one; it may return earlier. Makes no system call where polling suffices.
  void until(FunctionRef<bool()> ready, FunctionRef<void()> sleep);

 private:
  PollLimit limit_;
};

/// Blocks while `word` holds `value`, until `wake_one` is called on it. May return spuriously.
void sleep_while(const std::atomic<uint32_t>& word, uint32_t value);
/// Wakes one thread that sleeps on `word`. Uses only the address: the word may already be
/// destroyed.
void wake_one(const std::atomic<uint32_t>& word);

}  // namespace lockstep
