#include "core/base/process_exit.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace lockstep {

namespace {

constinit std::atomic<bool> g_exits = false;

void mark_exit() { g_exits.store(true, std::memory_order_relaxed); }

/// exit() destroys the calling thread's thread-local objects before any static one.
struct MarkWhenMainEnds {
  ~MarkWhenMainEnds() { mark_exit(); }
};
bool mark_when_this_thread_ends() {
  thread_local const MarkWhenMainEnds mark;
  return true;
}
[[maybe_unused]] const bool kMarks = getpid() == gettid() && mark_when_this_thread_ends();

}  // namespace

bool process_exits() noexcept { return g_exits.load(std::memory_order_relaxed); }

void note_exit() noexcept {
  static constinit std::atomic<int> left = 64;
  if (left.load(std::memory_order_relaxed) <= 0 || left.fetch_sub(1) <= 0) return;
  // Without memory for one more handler the flag is set later, by those before it.
  (void)std::atexit(mark_exit);
}

ExitGate::Stripe& ExitGate::own() noexcept {
  static constinit std::atomic<uint32_t> threads = 0;
  thread_local constinit uint32_t number = 0;  // 0: not set yet
  if (number == 0) number = threads.fetch_add(1, std::memory_order_relaxed) % kStripes + 1;
  return stripes_[number - 1];
}

// Either the thread that enters sees `closed_`, or the one that closes sees it inside: both write
// before they read, in one order for all.
bool ExitGate::enter() noexcept {
  own().inside.fetch_add(1, std::memory_order_seq_cst);
  if (!closed_.load(std::memory_order_seq_cst)) return true;
  leave();
  return false;
}

void ExitGate::leave() noexcept { own().inside.fetch_sub(1, std::memory_order_release); }

void ExitGate::close() noexcept {
  using namespace std::chrono_literals;
  closed_.store(true, std::memory_order_seq_cst);
  const auto patience = std::chrono::steady_clock::now() + 10s;
  for (Stripe& stripe : stripes_) {
    while (stripe.inside.load(std::memory_order_seq_cst) != 0 &&
           std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(100us);
    }
  }
}

void ExitGate::reset_after_fork() noexcept {
  for (Stripe& stripe : stripes_) stripe.inside.store(0, std::memory_order_relaxed);
}

}  // namespace lockstep
