#include "core/base/adaptive_wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lockstep {

namespace {

/// Tells the core that this is a polling loop.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

bool poll(FunctionRef<bool()> ready, int times) {
  for (int i = 0; i < times; ++i) {
    if (ready()) return true;
    relax();
  }
  return ready();
}

}  // namespace

void PollLimit::slept(Clock::duration waited, Clock::time_point now) {
  if (now < low_until_) return;
  value_ = waited <= kMost ? std::min(2 * value_, kMost) : std::max(value_ / 2, kLeast);
}

void PollLimit::lost_core(Clock::time_point now) {
  constexpr Clock::duration kFirst = std::chrono::milliseconds(10);
  constexpr Clock::duration kLongest = std::chrono::milliseconds(160);
  const bool again = now < low_until_ + low_for_;
  low_for_ = again ? std::min(2 * low_for_, kLongest) : kFirst;
  low_until_ = now + low_for_;
  value_ = kLeast;
}

void AdaptiveWait::until(FunctionRef<bool()> ready, FunctionRef<void()> sleep) {
  using Clock = PollLimit::Clock;
  // Polls between two clock reads; a read costs as much as a few polls. Most waits end in the first
  // poll() below, before any clock read.
  constexpr int kPolls = 16;
  if (poll(ready, 2 * kPolls)) return;
  while (true) {
    const Clock::time_point start = Clock::now();
    Clock::time_point now = start;
    bool lost_core = false;
    while (!lost_core && now - start < limit_.value()) {
      const bool is_ready = poll(ready, kPolls);
      const Clock::time_point before = std::exchange(now, Clock::now());
      lost_core = now - before > PollLimit::kLostCore;
      if (lost_core) limit_.lost_core(now);
      if (is_ready) return;
    }
    sleep();
    now = Clock::now();
    limit_.slept(now - start, now);
    // After a spurious wake-up the condition often becomes true soon, so the loop polls again.
    if (ready()) return;
  }
}

void sleep_while(const std::atomic<uint32_t>& word, uint32_t value) {
  // Every way in which this call fails counts as a spurious return.
  (void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake_one(const std::atomic<uint32_t>& word) {
  (void)syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace lockstep
