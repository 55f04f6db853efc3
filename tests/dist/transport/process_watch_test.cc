#include "dist/transport/process_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <vector>

namespace lockstep::dist {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<size_t> look(ProcessWatch& watch) {
  std::vector<size_t> ended;
  watch.look([&](size_t number) { ended.push_back(number); });
  return ended;
}

/// Starts a process that sleeps until it is killed.
pid_t sleeper() {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    while (true) pause();
  }
  return child;
}

TEST(ProcessWatch, TellsOfEachProcessThatEndedOnce) {
  const pid_t children[3] = {sleeper(), sleeper(), sleeper()};
  for (const pid_t child : children) ASSERT_GT(child, 0);
  ProcessWatch watch;
  for (const pid_t child : children) watch.add(child);
  EXPECT_THAT(look(watch), IsEmpty());
  ASSERT_EQ(kill(children[1], SIGKILL), 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::vector<size_t> ended;
  // A zombie counts as ended, so no waitpid is needed first.
  while (ended.empty() && std::chrono::steady_clock::now() < deadline) ended = look(watch);
  EXPECT_THAT(ended, ElementsAre(1));
  EXPECT_THAT(look(watch), IsEmpty());
  ASSERT_EQ(kill(children[0], SIGKILL), 0);
  ASSERT_EQ(kill(children[2], SIGKILL), 0);
  for (const pid_t child : children) EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_THAT(look(watch), ElementsAre(0, 2));
}

TEST(ProcessWatch, HasNothingToTellOfNobodyOrOfItself) {
  ProcessWatch watch;
  EXPECT_THAT(look(watch), IsEmpty());
  watch.add(getpid());
  EXPECT_THAT(look(watch), IsEmpty());
}

}  // namespace
}  // namespace lockstep::dist
