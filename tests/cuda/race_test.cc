// Races between threads of the emulated GPU, which ThreadSanitizer finds (./dev tsan-cuda).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "tests/emulation/block.h"
#include "tests/emulation/race_kernels.h"
#include "tests/emulation/races.h"

namespace lockstep::cuda {
namespace {

int run(const char* kernel, unsigned blocks, unsigned threads) {
  std::vector<int> out(64, -1);
  int count = 0;
  const emulation::Turned parameters{out.data(), &count};
  emulation::Launch launch;
  launch.kernel = emulation::find_kernel(kernel);
  launch.parameters = &parameters;
  launch.blocks.x = blocks;
  launch.threads.x = threads;
  launch.shared_bytes = 64 * sizeof(int);
  emulation::run(launch);
  return count;
}

class Race : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!emulation::races::kAreFound) GTEST_SKIP() << "the build has no ThreadSanitizer";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }

  void expect_race(const char* kernel, unsigned blocks, unsigned threads) {
    constexpr int kReported = 66;  // ThreadSanitizer's exit status
    EXPECT_EXIT(
        {
          run(kernel, blocks, threads);
          std::exit(0);
        },
        ::testing::ExitedWithCode(kReported), "data race")
        << kernel;
  }
};

TEST_F(Race, IsFoundWhereABarrierIsMissing) {
  expect_race("race_no_barrier", 1, 64);
  expect_race("race_one_barrier_of_two", 1, 64);
  expect_race("race_dynamic", 1, 64);
}

TEST_F(Race, IsFoundBetweenWarpsThatMeetApart) { expect_race("race_warp", 1, 64); }

TEST_F(Race, IsFoundBetweenBlocks) { expect_race("race_blocks", 2, 1); }

// Races end the process.
TEST_F(Race, IsNoneWhereBarriersWarpsAndAtomicsOrder) {
  for (int launch = 0; launch < 3; ++launch) {
    run("race_none", 1, 64);
    run("race_warp_none", 1, 32);
    EXPECT_EQ(run("race_blocks_none", 3, 1), 3);
    EXPECT_EQ(run("race_last_block_none", 4, 32), 6);
  }
}

}  // namespace
}  // namespace lockstep::cuda
