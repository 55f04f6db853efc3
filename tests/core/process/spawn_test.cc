#include "core/process/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/base/owned_fd.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep {
namespace {

using train::TemporaryDirectory;

/// Runs a shell line with this output, waits for it and says how it has ended.
std::string run_line(const std::string& line, int output = -1,
                     const ProcessEnvironment& environment = {}) {
  const Spawned spawned = spawn({"sh", "-c", line}, {.output = output}, environment);
  EXPECT_EQ(spawned.error, 0);
  int status = 0;
  EXPECT_EQ(::waitpid(spawned.process, &status, 0), spawned.process);
  return ending_of(status);
}

TEST(Spawn, SaysHowTheProgramHasEnded) {
  EXPECT_EQ(run_line("exit 3"), "it has ended with status 3");
  EXPECT_EQ(run_line("kill -9 $$"), "it was ended by signal 9 (Killed)");
}

TEST(Spawn, GivesTheStreamsAndTheEnvironmentThatAreGiven) {
  const TemporaryDirectory folder;
  const std::string file = folder.path() / "out";
  const OwnedFd out(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  const EnvironmentVariable before("SOME_VARIABLE", "before");
  const ProcessEnvironment environment;
  const EnvironmentVariable after("SOME_VARIABLE", "after"), no_path("PATH", "/nowhere");
  EXPECT_EQ(run_line("echo $SOME_VARIABLE", out.get(), environment), "it has ended with status 0");
  EXPECT_EQ(train::file_content(file), "before\n");
}

TEST(Spawn, TheProgramHasAGroupOfItsOwnAndDefaultSignals) {
  struct sigaction ignore {
  }, old{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGTERM, &ignore, &old), 0);
  EXPECT_EQ(run_line("[ \"$(cut -d' ' -f5 /proc/$$/stat)\" = $$ ] && kill -TERM $$"),
            "it was ended by signal 15 (Terminated)");
  ASSERT_EQ(::sigaction(SIGTERM, &old, nullptr), 0);
}

TEST(Spawn, TellsWhyAProgramWasNotStarted) {
  EXPECT_EQ(spawn({"no-such-program-at-all"}, {}).error, ENOENT);
}

}  // namespace
}  // namespace lockstep
