// Jobs that are told to stop while their ranks start.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/launcher/lost_ranks/faulty_job.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using EarlyStops = FaultyJob;

TEST_F(EarlyStops, BeforeTheFirstStepAreStopsWhereverTheyFindTheRanks) {
  put_job("run.txtpb");
  // The ranks have no handler at first; then they are in MPI_Init.
  for (const auto& wait : {0ms, 50ms, 100ms, 150ms, 200ms, 300ms, 500ms}) {
    Launched launched = start("run.txtpb --run-dir run");
    EXPECT_TRUE(comes_true([&] { return !descendants(launched.pid()).empty(); }));
    std::this_thread::sleep_for(wait);
    launched.signal(SIGTERM);
    const Result result = end_within(launched, 40s);
    EXPECT_EQ(result.status, 75) << wait.count() << " ms: " << result.errors;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "run/flight")) << wait.count();
    std::filesystem::remove_all(folder_ / "run");
  }
}

}  // namespace
}  // namespace lockstep::launcher
