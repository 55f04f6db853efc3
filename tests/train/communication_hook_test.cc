// parallel.bf16_compress, f16_compress and power_sgd in training.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "train/run/resume.h"

namespace lockstep::train {
namespace {

/// Losses of a run on 2 ranks. Checks that both end with the same weights.
Trace trained(const TemporaryDirectory& folder, const std::string& more, int steps) {
  const std::vector<Trace> all = traces(tiny_run(folder, more), 2, steps);
  EXPECT_EQ(all[0], all[1]) << more;
  return all[0];
}

TEST(CommunicationHooks, TrainingGoesOnWithThem) {
  const TemporaryDirectory folder;
  const std::string base = "model { gpt2 { dropout: 0 } } train { steps: 60 } ";
  const Trace plain = trained(folder, base, 60);
  ASSERT_LT(plain.losses.back(), plain.losses.front() - 1) << "there is something to learn";
  for (const char* hook : {"parallel { bf16_compress {} }", "parallel { f16_compress {} }"}) {
    const Trace found = trained(folder, base + hook, 60);
    EXPECT_NE(found.losses, plain.losses) << hook;
    EXPECT_NEAR(found.losses.back(), plain.losses.back(), 0.05) << hook;
  }
  const Trace found = trained(folder, base + "parallel { power_sgd { rank: 2 } }", 60);
  EXPECT_NE(found.losses, plain.losses);
  EXPECT_LT(found.losses.back(), found.losses.front() - 1);
  EXPECT_NEAR(found.losses.back(), plain.losses.back(), 0.4);
}

TEST(CommunicationHooks, BitsAreThoseOfTheCpuOnADeviceWithStreams) {
  const TemporaryDirectory folder;
  for (const char* more : {"parallel { power_sgd { rank: 2 } } train { micro_batch_size: 2 }",
                           "parallel { f16_compress {} } train { micro_batch_size: 2 leaves: 2 }",
                           "parallel { bf16_compress {} } precision: BF16_MIXED"}) {
    EXPECT_EQ(trained(folder, std::string(more) + " device: \"host:0\"", 6),
              trained(folder, more, 6))
        << more;
  }
}

TEST(CommunicationHooks, BucketSizesChangeNoBit) {
  const TemporaryDirectory folder;
  for (const std::string hook : {"bf16_compress {}", "f16_compress {}", "power_sgd { rank: 2 }"}) {
    EXPECT_EQ(
        trained(folder, "parallel { " + hook + " }", 5),
        trained(folder, "parallel { bucket_mib: 0.02 first_bucket_mib: 0.005 " + hook + " }", 5))
        << hook;
  }
}

TEST(CommunicationHooks, AStepTellsTheBytesThatItSent) {
  const TemporaryDirectory folder;
  const auto sent = [&](const std::string& hook) {
    const config::RunConfig config = tiny_run(folder, "parallel { " + hook + " }");
    int64_t bytes = 0;
    rethrow_first(dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
      Trainer trainer = Trainer::create(
          config, build_task(config, share_of_step(config.train(), &group)), &group);
      trainer.step();
      const StepResult second = trainer.step();
      if (group.rank() == 0) bytes = second.sent_bytes;
    }));
    return bytes;
  };
  const int64_t plain = sent("");
  EXPECT_GT(plain, 4 * 10000);
  EXPECT_LT(sent("bf16_compress {}"), plain * 51 / 100);
  EXPECT_LT(sent("power_sgd { rank: 1 }"), plain / 4);
  const config::RunConfig alone = tiny_run(folder);
  Trainer trainer = Trainer::create(alone);
  EXPECT_EQ(trainer.step().sent_bytes, -1);
}

TEST(CommunicationHooks, ResumingSaysThatPowerSgdBeginsAnew) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(
      folder, "parallel { power_sgd {} } train { steps: 2 } checkpoint { every_steps: 1 }");
  rethrow_first(run_on_ranks(config, folder, 2));
  Trainer trainer = Trainer::create(config);
  const Resumption resumption = resume(trainer, folder / "run" / "checkpoints", config);
  ASSERT_EQ(resumption.notes.size(), 2u);
  EXPECT_NE(resumption.notes[1].find("parallel.power_sgd begins anew"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::train
