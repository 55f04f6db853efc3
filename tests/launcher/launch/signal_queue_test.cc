#include "launcher/launch/signal_queue.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

/// Of this thread.
bool is_blocked(int signal) {
  sigset_t blocked;
  return ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0 && sigismember(&blocked, signal) == 1;
}

TEST(SignalQueue, HoldsTheSignalsOfAStopUntilTheyAreTaken) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    {
      SignalQueue queue;
      EXPECT_EQ(queue.take(), 0);
      EXPECT_EQ(queue.take_within(0ms), 0);
      ::raise(signal);
      EXPECT_EQ(queue.take_within(10s), signal) << signal_name(signal);
      EXPECT_EQ(queue.take(), 0);
    }
    EXPECT_FALSE(is_blocked(signal)) << signal_name(signal);
  }
}

TEST(SignalQueue, LeavesSignalsThatAreIgnoredAsUnderNohupIgnored) {
  for (const int signal : {SIGINT, SIGHUP}) {
    const auto before = ::signal(signal, SIG_IGN);
    {
      SignalQueue queue;
      ::raise(signal);
      ::raise(SIGTERM);
      EXPECT_EQ(queue.take(), SIGTERM) << signal_name(signal);
      EXPECT_EQ(queue.take(), 0) << signal_name(signal);
      EXPECT_FALSE(is_blocked(signal)) << "the ranks would inherit it";
    }
    EXPECT_EQ(::signal(signal, before), SIG_IGN);
  }
}

}  // namespace
}  // namespace lockstep::launcher
