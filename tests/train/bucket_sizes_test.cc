#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

constexpr int kSteps = 6;  // automatic sizes are chosen after three steps

std::string sizes(double mib) {
  return fmt::format("parallel {{ bucket_mib: {0} first_bucket_mib: {0} }} ", mib);
}

TEST(BucketSizes, ChangeNoBitOfTraining) {
  const TemporaryDirectory folder;
  const std::vector<Trace> expected = traces(tiny_run(folder, sizes(1e-6)), 4, kSteps);
  EXPECT_EQ(traces(tiny_run(folder), 4, kSteps), expected) << "chosen";
  EXPECT_EQ(traces(tiny_run(folder, sizes(0.01)), 4, kSteps), expected);
  EXPECT_EQ(traces(tiny_run(folder, sizes(100)), 4, kSteps), expected);
}

TEST(BucketSizes, ThatAreChosenChangeNoBitOverLeaves) {
  const TemporaryDirectory folder;
  const std::string bitwise =
      "reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 }";
  const Trace alone = trace(tiny_run(folder, bitwise), kSteps);
  for (const Trace& each : traces(tiny_run(folder, bitwise), 4, kSteps)) EXPECT_EQ(each, alone);
}

TEST(BucketSizes, ThatAreChosenAreToldOnce) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "train { steps: 8 }");
  std::FILE* const terminal = std::tmpfile();
  rethrow_first(dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
    if (group.rank() != 0) {
      follow_training(config, group, {});
      return;
    }
    TrainingRun run(config,
                    RunDirectory::create_at(folder / "run", RunDirectory::Existing::kRefuse), "{}",
                    nullptr, &group);
    run.run({.terminal = terminal});
  }));
  std::string text(1 << 16, '\0');
  std::rewind(terminal);
  text.resize(std::fread(text.data(), 1, text.size(), terminal));
  std::fclose(terminal);
  const size_t line = text.find("gradients: ");
  ASSERT_NE(line, text.npos) << text;
  EXPECT_NE(text.find("for a link of", line), text.npos) << text;
  EXPECT_EQ(text.find("gradients: ", line + 1), text.npos) << text;
  EXPECT_THAT(text.substr(0, line), testing::HasSubstr("step 1/8"));
}

}  // namespace
}  // namespace lockstep::train
