#include "launcher/stop_signals.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"

namespace lockstep::launcher {
namespace {

TEST(StopSignals, RemembersTheFirst) {
  const StopSignals signals;
  EXPECT_EQ(signals.received(), 0);
  ::raise(SIGUSR1);
  EXPECT_EQ(signals.received(), SIGUSR1);
}

TEST(StopSignals, GivesBackWhatWasThere) {
  const auto ignore = ::signal(SIGUSR1, SIG_IGN);
  stack_t stack;
  {
    const StopSignals signals;
    ASSERT_EQ(::sigaltstack(nullptr, &stack), 0);
    EXPECT_EQ(stack.ss_flags & SS_DISABLE, 0);
  }
  ASSERT_EQ(::sigaltstack(nullptr, &stack), 0);
  EXPECT_NE(stack.ss_flags & SS_DISABLE, 0);
  EXPECT_EQ(::signal(SIGUSR1, ignore), SIG_IGN);
}

TEST(StopSignals, AHangupThatIsIgnoredAsUnderNohupStaysIgnored) {
  const auto before = ::signal(SIGHUP, SIG_IGN);
  {
    const StopSignals signals;
    ::raise(SIGHUP);
    EXPECT_EQ(signals.received(), 0);
    ::raise(SIGTERM);
    EXPECT_EQ(signals.received(), SIGTERM);
  }
  EXPECT_EQ(::signal(SIGHUP, before), SIG_IGN);
}

TEST(StopSignals, InTheMiddleOfAProductDoNotChangeIt) {
  const Tensor a = full({96, 64}, 0.5);
  const Tensor b = full({64, 96}, 0.25);
  const pthread_t self = ::pthread_self();
  for (int i = 0; i < 300; ++i) {
    const StopSignals signals;
    std::atomic<bool> computing = false;
    std::thread sender([&] {
      while (!computing) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(i % 100));
      ::pthread_kill(self, SIGTERM);
    });
    computing = true;
    while (signals.received() == 0) {
      const Tensor product = mm(a, b);
      for (int64_t j = 0; j < product.numel(); ++j) ASSERT_EQ(product.data<float>()[j], 8.0F);
    }
    sender.join();
  }
}

}  // namespace
}  // namespace lockstep::launcher
