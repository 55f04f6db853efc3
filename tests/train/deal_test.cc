// Trainers whose ranks get other leaves between steps.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/ops/pointwise/pointwise.h"
#include "tests/core/expect_error.h"
#include "tests/train/forwarding_task.h"
#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

using dist::LeafDeal;

using Deals = std::vector<std::vector<int64_t>>;

/// A trace in which each step has the next of the deals, and then as many with the last.
Trace trace_by_deals(Trainer& trainer, const Deals& deals, bool ahead) {
  Trace result;
  const auto add = [&](const StepResult& step) {
    result.losses.push_back(step.loss);
    result.norms.push_back(step.grad_norm);
    EXPECT_EQ(step.audit, "");
  };
  for (const std::vector<int64_t>& counts : deals) {
    trainer.deal_out(LeafDeal::of_counts(counts));
    EXPECT_EQ(trainer.deal().counts(), counts);
    add(trainer.step(ahead));
  }
  for (size_t i = 0; i < deals.size(); ++i) add(trainer.step(ahead));
  trainer.give_up_next();
  trainer.gather_weights();
  for (const Tensor& parameter : trainer.task().model().parameters()) {
    const Tensor here = parameter.to(kCPU);
    result.weights.append(static_cast<const char*>(here.data()), here.nbytes());
  }
  return result;
}

const std::string kSmallBuckets = " parallel { bucket_mib: 0.02 first_bucket_mib: 0.005 } ";

/// Expects the trace of a rank alone, which runs no audits, from ranks with changing deals.
void expect_bits_of_one_rank(const std::string& more, const Deals& deals, bool ahead = false) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "reproducibility: BITWISE " + more);
  const Trace one = trace(config, static_cast<int>(2 * deals.size()));
  const int ranks = static_cast<int>(deals.front().size());
  const auto found = trained_on_ranks(
      config, ranks, [&](Trainer& trainer) { return trace_by_deals(trainer, deals, ahead); });
  for (const Trace& each : found) EXPECT_EQ(each, one) << more << ", " << ranks << " ranks";
}

const Deals kTwo = {{1, 7}, {7, 1}, {5, 3}};
const Deals kThree = {{2, 3, 3}, {6, 1, 1}, {1, 2, 5}};

TEST(Deal, ChangedBetweenStepsItChangesNoBit) {
  for (const char* more : kBitwiseRuns) {
    if (std::string(more).find("leaves: 16") != std::string::npos) {
      expect_bits_of_one_rank(more + kSmallBuckets, {{1, 15}, {11, 5}, {8, 8}});
      continue;
    }
    expect_bits_of_one_rank(more + kSmallBuckets, kTwo);
    expect_bits_of_one_rank(more + kSmallBuckets, kThree);
  }
}

TEST(Deal, GoesWithMicroBatchesInALeafAndAudits) {
  const std::string more = "train { batch_size: 16 micro_batch_size: 1 } ";
  expect_bits_of_one_rank(more + "audit { every_steps: 1 }", kTwo);
  expect_bits_of_one_rank(more + "audit { every_steps: 1 }", kThree);
}

TEST(Deal, GoesWithStepsThatAreBegunAheadOnADeviceWithStreams) {
  const std::string more = "train { batch_size: 8 micro_batch_size: 1 } device: \"host:0\"";
  expect_bits_of_one_rank(more, kTwo);
  expect_bits_of_one_rank(more, kThree, /*ahead=*/true);
}

TEST(Deal, GoesWithOptimizerStateThatIsSpreadOverTheRanks) {
  const std::string more =
      "train { batch_size: 8 micro_batch_size: 1 } "
      "parallel { strategy: SHARD_OPTIMIZER balance: SPEED } ";
  expect_bits_of_one_rank(more, kTwo);
  expect_bits_of_one_rank(more + "audit { every_steps: 1 }", kThree);
}

TEST(Deal, AnAuditNamesTheRankThatHasTheMicroBatchNow) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(
      folder,
      std::string("reproducibility: BITWISE ") +
          "train { batch_size: 8 micro_batch_size: 1 } audit { every_steps: 1 } inject { "
          "flip: "
          "\"step=2,micro_batch=1,operator=linear_of_gelu_backward.out,call=1,element=3,bit=22\" "
          "}");
  const auto found = trained_on_ranks(config, 3, [&](Trainer& trainer) {
    trainer.step();
    trainer.deal_out(LeafDeal::of_counts(std::vector<int64_t>{1, 6, 1}));
    return trainer.step().audit;  // of rank 1's first micro-batch
  });
  for (const std::string& text : found) {
    EXPECT_EQ(text.find("micro-batch 1: "), 0u) << text;
    EXPECT_NE(text.find("rank 1 ("), std::string::npos) << text;
  }
}

/// The losses of batch 5 are 40 times as large.
class LoudBatchTask final : public ForwardingTask {
 public:
  using ForwardingTask::ForwardingTask;
  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override {
    SummedLoss loss = ForwardingTask::forward(batch, first, count);
    if (batch == 5) loss.sum = loss.sum * 40;
    return loss;
  }
};

TEST(Deal, ASpikeNamesTheSamplesThatItNamesOnOneRank) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(
      folder,
      "reproducibility: BITWISE train { batch_size: 16 micro_batch_size: 1 loss_spike { action: "
      "SKIP z: 8 window: 4 limit: 2 } }");
  const auto spike_of = [&](dist::ProcessGroup* group) {
    const StepShare share = share_of_step(config.train(), group);
    Trainer trainer =
        Trainer::create(config, std::make_unique<LoudBatchTask>(build_task(config, share)), group);
    StepResult last;
    for (int step = 0; step < 6; ++step) {
      if (group != nullptr && step == 3) {
        trainer.deal_out(LeafDeal::of_counts(std::vector<int64_t>{1, 6, 1}));
      }
      last = trainer.step();
    }
    return last.spike;
  };
  const std::string alone = spike_of(nullptr);
  EXPECT_NE(alone.find("; "), std::string::npos) << alone;
  rethrow_first(dist::run_thread_ranks(
      3, [&](dist::ProcessGroup& group) { EXPECT_EQ(spike_of(&group), alone); }));
}

TEST(Deal, OfOtherLeavesOrOutsideOfBitwiseItIsRefused) {
  const TemporaryDirectory folder;
  for (const auto& [more, what] :
       {std::pair("reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 }",
                  "[reducer] deal: expected 8 leaves for 2 ranks, got 7 for 2"),
        std::pair("train { batch_size: 8 micro_batch_size: 1 leaves: 8 }",
                  "[reducer] deal: expected a sum over a tree of leaves")}) {
    trained_on_ranks(tiny_run(folder, more), 2, [&, what = what](Trainer& trainer) {
      const std::vector<int64_t> counts = {3, 4};
      expect_error<DistError>([&] { trainer.deal_out(LeafDeal::of_counts(counts)); }, what);
      return trainer.step().loss;
    });
  }
}

}  // namespace
}  // namespace lockstep::train
