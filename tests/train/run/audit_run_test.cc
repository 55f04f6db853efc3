// Runs with audits.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/core/expect_error.h"
#include "tests/train/bisect/random_flip.h"
#include "tests/train/bisect/recorded_runs.h"
#include "tests/train/forwarding_task.h"
#include "tests/train/rank_runs.h"
#include "train/build.h"
#include "train/report/metrics_history.h"

namespace lockstep::train {
namespace {

const std::string kAuditedRun =
    "train { steps: 8 batch_size: 8 micro_batch_size: 1 leaves: 8 } reproducibility: BITWISE ";

/// One bit of what `operator_name` computes in a micro-batch of a step, counted from 1.
std::string flip(int64_t step, int64_t micro_batch, const std::string& operator_name) {
  return fmt::format(
      "inject {{ flip: \"step={},micro_batch={},operator={},call=1,element=3,bit=22\" }} ", step,
      micro_batch, operator_name);
}

/// Losses, norms and weights; and what audits found.
struct Left {
  std::string numbers, found;
};
Left run(const std::string& more, int ranks) {
  const TemporaryDirectory folder;
  rethrow_first(run_on_ranks(tiny_run(folder, kAuditedRun + more), folder, ranks));
  Left left;
  for (const MetricsRecord& record : read_metrics(folder / "run")) {
    left.numbers += fmt::format("{} {} {}\n", record.step, *record.loss, *record.grad_norm);
  }
  left.numbers += file_content(folder / "run/model.safetensors");
  const std::string metrics = file_content(folder / "run/metrics.jsonl");
  if (const size_t at = metrics.find("\"audit\":\""); at != std::string::npos) {
    left.found = metrics.substr(at, metrics.find("\",", at) - at);
  }
  return left;
}

TEST(AuditedRun, ChangesNothingAndRaisesNoFalseAlarm) {
  const std::string alone = run("", 1).numbers;
  for (const auto& [more, ranks] :
       {std::pair("", 2), std::pair("", 3), std::pair("parallel { strategy: FULL_SHARD }", 3),
        std::pair("parallel { strategy: SHARD_OPTIMIZER }", 2),
        std::pair("parallel { strategy: HYBRID_SHARD shard_size: 2 }", 4),
        std::pair("device: \"host:0\"", 2),
        std::pair("device: \"host:0\" parallel { strategy: FULL_SHARD }", 2)}) {
    const Left left = run(std::string("audit { every_steps: 1 } ") + more, ranks);
    EXPECT_TRUE(left.numbers == alone) << more << " " << ranks;
    EXPECT_EQ(left.found, "") << more << " " << ranks;
  }
}

TEST(AuditedRun, OtherPrecisionsAndRecomputationAreAuditedAlike) {
  for (const std::string more :
       {"precision: BF16_MIXED", "precision: F16_MIXED", "model { recompute: BLOCK }",
        "optimizer { sgd { momentum: 0.9 } }",
        "parallel { strategy: FULL_SHARD } precision: BF16_MIXED"}) {
    const std::string plain = run(more, 2).numbers;
    const Left audited = run(more + " audit { every_steps: 2 }", 2);
    EXPECT_TRUE(audited.numbers == plain) << more;
    EXPECT_EQ(audited.found, "") << more;
  }
}

// Step 3 audits rank 0 of three: its first micro-batch.
TEST(AuditedRun, AFlippedBitNamesItsRankAndTheStepIsDoneAgain) {
  const std::string whole = run("", 1).numbers;
  for (const auto& [name, more] :
       {std::pair("stream_norm", ""), std::pair("linear_of_gelu_backward.out", ""),
        std::pair("stream_norm", "device: \"host:0\""),
        std::pair("linear_of_gelu_backward.out", "parallel { strategy: FULL_SHARD }")}) {
    const Left left = run("audit { every_steps: 3 } " + flip(3, 0, name) + more, 3);
    EXPECT_TRUE(says(left.found, "that rank 0 (")) << left.found;
    EXPECT_TRUE(says(left.found, ". rank 0 (")) << left.found;
    EXPECT_TRUE(says(left.found, "is wrong: what rank 2 (")) << left.found;
    EXPECT_TRUE(left.numbers == whole) << name << more;
  }
}

TEST(AuditedRun, TwoRanksFindAFaultThatDoesNotComeBack) {
  const Left left = run("audit { every_steps: 3 } " + flip(6, 4, "linear_of_gelu_backward.out"), 2);
  EXPECT_TRUE(says(left.found, ". rank 1 (")) << left.found;
  EXPECT_TRUE(says(left.found, "what it computes now is the auditor's")) << left.found;
  EXPECT_TRUE(left.numbers == run("", 1).numbers);
}

TEST(AuditedRun, WeightsThatDifferEndTheRun) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, kAuditedRun + "audit { every_steps: 1 }");
  const auto errors = dist::run_thread_ranks(3, [&](dist::ProcessGroup& group) {
    Trainer trainer = Trainer::create(config, build_task(config), &group);
    trainer.step();
    if (group.rank() == 1) {
      const NoGradGuard no_grad;
      trainer.task().model().parameters()[2].fill_(0.5);
    }
    trainer.step();
  });
  for (const auto& error : errors) {
    expect_error<DeviceError>([&] { std::rethrow_exception(error); }, "got others on rank 1 (");
  }
}

/// As many trials as TEST_AUDIT_TRIALS says, where it is set.
int audit_trials() {
  const char* const text = std::getenv("TEST_AUDIT_TRIALS");
  return text != nullptr ? std::atoi(text) : 4;
}

TEST(AuditTrials, ARandomBitIsFoundOrChangesNothing) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, kAuditedRun);
  const RecordedRun alone = recorded(folder, "alone", config);
  const std::string whole = run("", 1).numbers;
  std::mt19937 random(27);
  int found = 0;
  for (int trial = 0; trial < audit_trials(); ++trial) {
    const int ranks = 2 + trial % 3;
    std::vector<MicroBatches> of_ranks;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const StepShare share = share_of_step(config.train(), rank, ranks);
      of_ranks.push_back({share.first_micro_batch, share.micro_batches});
    }
    // Sums over leaves come after what is audited.
    const auto is_audited = [&](const TracedPart& part, const TracedCall& call) {
      return part.part.micro_batch == audit_of(part.part.step, of_ranks).micro_batch &&
             call.op->name() != "add_.Tensor" && call.op->name() != "copy_";
    };
    const config::BitFlip flip = random_flip(alone, random, is_audited, /*bits=*/23);
    const Left left =
        run("audit { every_steps: 1 } inject { flip: \"" + to_text(flip) + "\" }", ranks);
    EXPECT_TRUE(left.numbers == whole) << to_text(flip) << "\n" << left.found;
    if (left.found.empty()) continue;
    ++found;
    const int wrong = audit_of(flip.step - 1, of_ranks).audited;
    EXPECT_TRUE(says(left.found, fmt::format(". rank {} (", wrong))) << to_text(flip);
    EXPECT_TRUE(says(left.found, "is wrong: what ")) << to_text(flip) << "\n" << left.found;
  }
  std::printf("%d of %d random bits changed a loss or a gradient, and were found\n", found,
              audit_trials());
}

/// A rank that always computes losses that are too large.
class WrongTask final : public ForwardingTask {
 public:
  using ForwardingTask::ForwardingTask;
  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override {
    SummedLoss loss = ForwardingTask::forward(batch, first, count);
    loss.sum = loss.sum * 1.5;
    return loss;
  }
};

TEST(AuditedRun, ARankThatIsWrongThreeTimesEndsTheRun) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, kAuditedRun + "audit { every_steps: 4 }");
  std::FILE* const nowhere = std::fopen("/dev/null", "w");
  const auto errors = dist::run_thread_ranks(3, [&](dist::ProcessGroup& group) {
    if (group.rank() != 0) {
      follow_training(config, group, {});
      return;
    }
    TrainingRun run(
        config, RunDirectory::create_at(folder / "run", RunDirectory::Existing::kContinue), "{}",
        std::make_unique<WrongTask>(build_task(config, share_of_step(config.train(), &group))),
        &group);
    run.run({.terminal = nowhere});
  });
  std::fclose(nowhere);
  expect_error<DeviceError>([&] { std::rethrow_exception(errors[0]); },
                            "[audit] step 4: ", ". rank 0 (", "That was so 3 times in a row");
  const std::string metrics = file_content(folder / "run/metrics.jsonl");
  EXPECT_TRUE(says(metrics, R"("step":4,)"));
  EXPECT_TRUE(says(metrics, R"("skipped":true,"audit":"micro-batch 0: )"));
}

TEST(AuditedRun, NeedsSeveralRanks) {
  const TemporaryDirectory folder;
  expect_error<ConfigError>(
      [&] {
        rethrow_first(
            run_on_ranks(tiny_run(folder, kAuditedRun + "audit { every_steps: 1 }"), folder, 1));
      },
      "with one rank: expected several");
}

}  // namespace
}  // namespace lockstep::train
