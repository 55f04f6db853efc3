#include "launcher/stop_signals.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/base/check.h"

namespace lockstep::launcher {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1};

std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may use it");

extern "C" void ask_for_stop(int signal) {
  int none = 0;
  if (stop_signal.compare_exchange_strong(none, signal)) return;
  // Takes the default action, so that the parent sees which signal ended the process.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  ::raise(signal);
}

void check(int result) {
  LS_CHECK(result == 0, Error, "[signals] the system refused a handler for stop signals: {}.",
           std::strerror(errno));
}

/// Size of the alternate stack: 16 KiB for the handler, and the signal frame, whose size depends on
/// the processor since it holds all vector and tile registers.
size_t stack_bytes() {
  constexpr size_t kHandler = 16384;
  return kHandler + static_cast<size_t>(std::max(0L, ::sysconf(_SC_SIGSTKSZ)));
}

}  // namespace

StopSignals::StopSignals() : stack_(std::make_unique<std::byte[]>(stack_bytes())) {
  stop_signal = 0;
  stack_t stack{};
  stack.ss_sp = stack_.get();
  stack.ss_size = stack_bytes();
  check(::sigaltstack(&stack, &stack_before_));
  struct sigaction action {};
  action.sa_handler = ask_for_stop;
  action.sa_flags = SA_RESTART | SA_ONSTACK;  // restarts interrupted system calls
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    check(::sigaction(kSignals[i], &action, &before_[i]));
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  ::sigaltstack(&stack_before_, nullptr);
}

int StopSignals::received() const { return stop_signal; }

}  // namespace lockstep::launcher
