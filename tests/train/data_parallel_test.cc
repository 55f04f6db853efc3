// Training over ranks: each rank computes a share of every step, and all have the same model.

#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "dist/group/failure.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "train/build.h"
#include "train/run/replicas.h"
#include "train/step_share.h"

namespace lockstep::train {
namespace {

using dist::run_thread_ranks;

void expect_close(const Trace& one, const Trace& many, const std::string& what) {
  ASSERT_EQ(one.losses.size(), many.losses.size());
  for (size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(one.losses[i], many.losses[i], 1e-5) << what << ", step " << i;
    EXPECT_NEAR(one.norms[i], many.norms[i], 1e-4 * one.norms[i]) << what << ", step " << i;
  }
}

TEST(DataParallel, LossesAreThoseOfOneRank) {
  const TemporaryDirectory folder;
  for (const char* more :
       {"model { gpt2 { dropout: 0 } }", "model { gpt2 { dropout: 0 } } device: \"host:0\"",
        "train { micro_batch_size: 1 leaves: 8 }",
        "train { micro_batch_size: 1 leaves: 8 } optimizer { sgd {} }"}) {
    const config::RunConfig config = tiny_run(folder, more);
    const Trace one = trace(config, 20);
    for (const int ranks : {2, 4}) {
      const std::vector<Trace> all = traces(config, ranks, 20);
      for (const Trace& each : all) {
        EXPECT_EQ(each, all[0]) << "all ranks have the same losses and weights";
      }
      expect_close(one, all[0], std::string(more) + ", ranks: " + std::to_string(ranks));
    }
  }
}

TEST(DataParallel, LeavesAreSharedOutWhereTheyDoNotComeOutEven) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "train { micro_batch_size: 1 leaves: 8 }");
  const Trace one = trace(config, 5);
  for (const int ranks : {3, 6}) expect_close(one, traces(config, ranks, 5)[0], "leaves");
}

TEST(DataParallel, SharesCoverTheStepOnce) {
  const TemporaryDirectory folder;
  for (const char* more :
       {"train { batch_size: 24 }", "train { batch_size: 24 micro_batch_size: 4 }",
        "train { batch_size: 24 micro_batch_size: 3 leaves: 8 }"}) {
    const config::RunConfig config = tiny_run(folder, more);
    for (const int64_t size : {1, 2, 3, 4, 6, 8}) {
      int64_t next = 0;
      for (int64_t rank = 0; rank < size; ++rank) {
        const StepShare share = share_of_step(config.train(), rank, size);
        EXPECT_EQ(share.first_sample, next);
        EXPECT_EQ(share.first_micro_batch * share.micro_batch_size, share.first_sample);
        EXPECT_EQ(share.micro_batches % share.leaves, 0);
        next += share.micro_batches * share.micro_batch_size;
      }
      EXPECT_EQ(next, 24);
    }
  }
  const config::RunConfig config = tiny_run(folder, "train { batch_size: 24 }");
  expect_error<ConfigError>([&] { (void)share_of_step(config.train(), 0, 5); }, "5 ranks", "24");
}

TEST(DataParallel, ARunIsResumedFromItsCheckpointsOnAllRanks) {
  const TemporaryDirectory folder;
  const TemporaryDirectory interrupted;
  const std::string more =
      "model { gpt2 { dropout: 0 } } train { steps: 8 } checkpoint { every_steps: 3 }";
  const config::RunConfig config = tiny_run(folder, more);
  for (const auto& error : run_on_ranks(config, folder, 2)) EXPECT_FALSE(error);

  // Asks rank 1, which does not lead, to stop in its fifth step.
  std::atomic<int> asked = 0;
  const auto errors = run_on_ranks(config, interrupted, 2, [&] { return ++asked >= 5; });
  expect_error<DataError>([&] { std::rethrow_exception(errors[0]); }, "stopped");
  EXPECT_FALSE(errors[1]);
  EXPECT_FALSE(std::filesystem::exists(interrupted / "run" / "model.safetensors"));
  for (const auto& error : run_on_ranks(config, interrupted, 2)) EXPECT_FALSE(error);
  EXPECT_TRUE(weights_of(interrupted) == weights_of(folder)) << "other bits than uninterrupted";
}

TEST(DataParallel, ARankThatIsAskedToStopInAnEvaluationStopsTheRun) {
  const TemporaryDirectory folder;
  const TemporaryDirectory interrupted;
  const config::RunConfig config =
      tiny_run(folder, "train { steps: 6 eval_every: 3 micro_batch_size: 2 leaves: 2 }");
  for (const auto& error : run_on_ranks(config, folder, 2)) EXPECT_FALSE(error);

  // Three steps ask once each, so the fifth question comes in the evaluation after them.
  std::atomic<int> asked = 0;
  const auto errors = run_on_ranks(config, interrupted, 2, [&] { return ++asked == 5; });
  expect_error<DataError>([&] { std::rethrow_exception(errors[0]); }, "stopped");
  EXPECT_FALSE(errors[1]);
  EXPECT_EQ(asked, 5) << "another step was begun";
  for (const auto& error : run_on_ranks(config, interrupted, 2)) EXPECT_FALSE(error);
  EXPECT_TRUE(weights_of(interrupted) == weights_of(folder)) << "other bits than uninterrupted";
}

TEST(DataParallel, AnotherConfigOrModelOnOneRankIsNamedBeforeTraining) {
  const TemporaryDirectory folder;
  const auto errors = run_thread_ranks(3, [&](dist::ProcessGroup& group) {
    Replicas(&group).require_same("config", group.rank() == 2 ? "a: 1\nb: 3\n" : "a: 1\nb: 2\n");
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<dist::CommonMismatchError>([&] { std::rethrow_exception(error); }, "rank 2",
                                            "config", "\"b: 2\"", "\"b: 3\"");
  }
  const config::RunConfig config = tiny_run(folder);
  const config::RunConfig wide = tiny_run(folder, "model { gpt2 { width: 32 } }");
  const auto wider = run_thread_ranks(2, [&](dist::ProcessGroup& group) {
    const auto task = build_task(group.rank() == 1 ? wide : config);
    Replicas(&group).require_same_model(task->model());
  });
  for (const std::exception_ptr& error : wider) {
    ASSERT_TRUE(error);
    expect_error<dist::CommonMismatchError>([&] { std::rethrow_exception(error); }, "another model",
                                            "16", "32");
  }
}

TEST(DataParallel, AnErrorOfOneRankEndsTheRunOfAll) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "train { steps: 50 }");
  const auto errors =
      run_on_ranks(config, folder, 2, []() -> bool { throw DataError("[data] shard 3 is gone"); });
  expect_error<DataError>([&] { std::rethrow_exception(errors[1]); }, "shard 3");
  ASSERT_TRUE(errors[0]);
  expect_error<PeerLostError>([&] { std::rethrow_exception(errors[0]); }, "rank 1");
}

}  // namespace
}  // namespace lockstep::train
