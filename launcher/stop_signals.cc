#include "launcher/stop_signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace lockstep::launcher {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1};

std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may use it");

extern "C" void ask_for_stop(int signal) {
  int none = 0;
  if (stop_signal.compare_exchange_strong(none, signal)) return;
  // The default action, so that the parent sees which signal it was.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  ::raise(signal);
}

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  struct sigaction action {};
  action.sa_handler = ask_for_stop;
  action.sa_flags = SA_RESTART;  // no read or write need know of it
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

int StopSignals::received() const { return stop_signal; }

}  // namespace lockstep::launcher
