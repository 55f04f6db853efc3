#include "launcher/launch/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::launcher {
namespace {

/// A process that starts others without pause, each of which ends at once.
class ForkingProcess {
 public:
  ForkingProcess() : pid_(::fork()) {
    if (pid_ != 0) return;
    for (;;) {
      if (::fork() == 0) ::_exit(0);
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
    }
  }
  ~ForkingProcess() {
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }
  ForkingProcess(const ForkingProcess&) = delete;
  ForkingProcess& operator=(const ForkingProcess&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(ChildProcess, DescendantsAreFoundWhileOthersEnd) {
  const std::array<ForkingProcess, 4> forking;
  for (int i = 0; i < 400; ++i) {
    const std::vector<pid_t> found = descendants(::getpid());
    for (const ForkingProcess& each : forking) {
      ASSERT_EQ(std::ranges::count(found, each.pid()), 1);
    }
  }
}

TEST(ChildProcess, TellsWhichSignalsItCatches) {
  const ChildProcess child({"/bin/sh", "-c", "trap : USR1; while :; do sleep 0.01; done"}, {}, "");
  while (!child.catches(SIGUSR1)) ::usleep(1000);
  EXPECT_FALSE(child.catches(SIGUSR2));
}

TEST(ChildProcess, StartsItsProgramWhenItsParentIsReady) {
  std::string before;
  const ChildProcess child({"/bin/sleep", "60"}, {}, "",
                           [&](const ChildProcess& child) { before = program_of(child.pid()); });
  EXPECT_EQ(before, program_of(::getpid()));
  EXPECT_NE(program_of(child.pid()), before);
}

TEST(ChildProcess, EndsWithoutItsProgramWhenItsParentFails) {
  const auto fail = [](const ChildProcess&) { throw std::runtime_error("not ready"); };
  EXPECT_THROW(ChildProcess({"/bin/sleep", "60"}, {}, "", fail), std::runtime_error);
  EXPECT_TRUE(descendants(::getpid()).empty());
}

}  // namespace
}  // namespace lockstep::launcher
