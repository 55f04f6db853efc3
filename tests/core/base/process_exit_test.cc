#include "core/base/process_exit.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

namespace lockstep {

namespace {

namespace fs = std::filesystem;

const fs::path kEndingProgram = fs::path(LOCKSTEP_BIN_DIR) / "ending_program";

/// A sanitized program takes seconds to start and looks for races in one run as in many.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRuns = 2;
#else
constexpr int kRuns = 25;
#endif

/// What the runs ended with that did not exit with 0: "signal 6", say.
std::string failures_of_runs(std::string compute, std::string end) {
  std::string failures;
  for (int i = 0; i < kRuns; ++i) {
    std::string program = kEndingProgram.string();
    const std::array<char*, 4> arguments = {program.data(), compute.data(), end.data(), nullptr};
    pid_t child = 0;
    if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0) {
      return "the program does not start";
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) return "the program is lost";
    if (WIFSIGNALED(status)) failures += " signal " + std::to_string(WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
      failures += " status " + std::to_string(WEXITSTATUS(status));
    }
  }
  return failures;
}

/// The parameter: what the threads compute.
class ProcessExit : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!fs::exists(kEndingProgram)) GTEST_SKIP() << "ending_program was not built";
  }
};

TEST_P(ProcessExit, ReturnFromMainEndsCleanlyWhileThreadsCompute) {
  EXPECT_EQ(failures_of_runs(GetParam(), "return"), "");
}

TEST_P(ProcessExit, ExitEndsCleanlyWhileThreadsCompute) {
  EXPECT_EQ(failures_of_runs(GetParam(), "exit"), "");
}

TEST_P(ProcessExit, ExitOnAnotherThreadEndsCleanlyWhileThreadsCompute) {
  EXPECT_EQ(failures_of_runs(GetParam(), "exit-elsewhere"), "");
}

INSTANTIATE_TEST_SUITE_P(Computing, ProcessExit,
                         testing::Values("forward", "convolve", "backward", "own", "loader"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ExitGate, LetsThreadsInUntilItIsClosed) {
  ExitGate gate;
  {
    const ExitGate::Use outer(gate);
    const ExitGate::Use inner(gate);
    EXPECT_TRUE(outer);
    EXPECT_TRUE(inner);
  }
  gate.close();
  EXPECT_FALSE(ExitGate::Use(gate));
}

TEST(ExitGate, ClosingWaitsForThoseInside) {
  ExitGate gate;
  std::atomic<bool> is_inside = false;
  std::atomic<bool> may_leave = false;
  std::atomic<bool> has_left = false;
  std::thread user([&] {
    const ExitGate::Use use(gate);
    is_inside = true;
    while (!may_leave) std::this_thread::yield();
    has_left = true;
  });
  while (!is_inside) std::this_thread::yield();
  std::thread leaver([&] {
    // From here on nobody is let in any more.
    while (ExitGate::Use(gate)) std::this_thread::yield();
    may_leave = true;
  });
  gate.close();
  EXPECT_TRUE(has_left);
  user.join();
  leaver.join();
}

TEST(ExitGate, AForkedChildWaitsForNoThreadOfItsParent) {
  ExitGate gate;
  EXPECT_TRUE(gate.enter());  // by a thread that the child lacks
  gate.reset_after_fork();
  gate.close();
  EXPECT_FALSE(gate.enter());
}

}  // namespace

}  // namespace lockstep
