// parallel.local_sgd: ranks that take steps of their own, in training.

#include "train/local_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "train/run/plan.h"

namespace lockstep::train {
namespace {

std::string local_sgd(const std::string& options, const std::string& more = "") {
  return "parallel { local_sgd { " + options + " } } " + more;
}

TEST(LocalSteps, TrainingGoesOnWithAFractionOfTheBytes) {
  const TemporaryDirectory folder;
  const std::string base = "model { gpt2 { dropout: 0 } } train { steps: 60 } ";
  struct Found {
    double loss;
    int64_t sent;
  };
  const auto trained = [&](const std::string& more) {
    return trained_on_ranks(tiny_run(folder, base + more), 2, [](Trainer& trainer) {
      Found found{0, 0};
      for (int step = 0; step < 60; ++step) found.sent += trainer.step().sent_bytes;
      found.loss = trainer.evaluate(0)->loss;
      return found;
    });
  };
  const std::vector<Found> plain = trained("");
  const std::vector<Found> local = trained(local_sgd("inner_steps: 10 bits: 4"));
  EXPECT_EQ(local[0].loss, local[1].loss) << "all ranks evaluate the weights that they share";
  EXPECT_LT(local[0].loss, plain[0].loss + 0.3);
  EXPECT_LT(local[0].sent * 20, plain[0].sent);
}

TEST(LocalSteps, OneStepWithoutMomentumIsTheMeanOfTheRanksSteps) {
  const TemporaryDirectory folder;
  // Gradient descent is linear: the mean of the updates is the update by the mean.
  const std::string sgd = "optimizer { sgd { momentum: 0 } clip_grad_norm: 0 } ";
  const Trace plain = traces(tiny_run(folder, sgd), 2, 5)[0];
  const Trace local =
      traces(tiny_run(folder, sgd + local_sgd("inner_steps: 1 bits: 32 outer { learning_rate: 1 "
                                              "momentum: 0 }")),
             2, 5)[0];
  for (size_t step = 0; step < plain.losses.size(); ++step) {
    EXPECT_NEAR(local.losses[step], plain.losses[step], 1e-5) << step;
  }
}

TEST(LocalSteps, RanksTellTheSameNumbersAndRepeatThem) {
  const TemporaryDirectory folder;
  const std::string more =
      local_sgd("inner_steps: 4 fragments: 2 delay_steps: 1 bits: 4", "train { batch_size: 12 }");
  const std::vector<Trace> once = traces(tiny_run(folder, more), 3, 9);
  const std::vector<Trace> again = traces(tiny_run(folder, more), 3, 9);
  const std::vector<Trace> there = traces(tiny_run(folder, more + " device: \"host:0\""), 3, 9);
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(once[rank].losses, once[0].losses);
    EXPECT_EQ(once[rank].norms, once[0].norms);
    EXPECT_EQ(once[rank], again[rank]);
    EXPECT_EQ(once[rank], there[rank]);
  }
  EXPECT_NE(once[0].weights, once[1].weights) << "between averages";
}

TEST(LocalSteps, AStoppedRunGoesOnToTheBitsOfAWholeOne) {
  const std::string options = "inner_steps: 5 fragments: 2 delay_steps: 2 bits: 4";
  for (const char* more :
       {"checkpoint { every_steps: 4 }", "checkpoint { every_steps: 4 asynchronous: true }",
        "checkpoint { every_steps: 4 } optimizer { muon {} }",
        "checkpoint { every_steps: 4 } precision: BF16_MIXED"}) {
    const std::string text =
        local_sgd(options, "train { steps: 14 eval_every: 3 } " + std::string(more));
    const TemporaryDirectory whole;
    rethrow_first(run_on_ranks(tiny_run(whole, text), whole, 2));
    const TemporaryDirectory parts;
    for (int stop = 0; stop < 3; ++stop) {
      std::atomic<int> asked = 0;
      const auto errors =
          run_on_ranks(tiny_run(parts, text), parts, 2, [&] { return ++asked > 5; });
      expect_error<DataError>([&] { std::rethrow_exception(errors[0]); }, "stopped");
    }
    rethrow_first(run_on_ranks(tiny_run(parts, text), parts, 2));
    ASSERT_FALSE(weights_of(whole).empty());
    EXPECT_TRUE(weights_of(parts) == weights_of(whole)) << more;
  }
}

TEST(LocalSteps, ARunGoesOnWithMoreAndFewerRanks) {
  const std::string text = local_sgd(
      "inner_steps: 4", "train { batch_size: 12 steps: 14 } checkpoint { every_steps: 3 }");
  const TemporaryDirectory folder;
  for (const int ranks : {2, 3}) {
    std::atomic<int> asked = 0;
    const auto errors =
        run_on_ranks(tiny_run(folder, text), folder, ranks, [&] { return ++asked > 4; });
    expect_error<DataError>([&] { std::rethrow_exception(errors[0]); }, "stopped");
  }
  rethrow_first(run_on_ranks(tiny_run(folder, text), folder, 2));
  EXPECT_FALSE(weights_of(folder).empty());
}

TEST(LocalSteps, ARunOfOtherRanksGoesOnWithThem) {
  const std::string more = "train { steps: 12 } checkpoint { every_steps: 3 }";
  const TemporaryDirectory folder;
  std::atomic<int> asked = 0;
  const auto errors = run_on_ranks(tiny_run(folder, more), folder, 1, [&] { return ++asked > 4; });
  expect_error<DataError>([&] { std::rethrow_exception(errors[0]); }, "stopped");
  rethrow_first(run_on_ranks(tiny_run(folder, local_sgd("inner_steps: 4", more)), folder, 2));
  EXPECT_FALSE(weights_of(folder).empty());
}

TEST(LocalSteps, TheirCheckpointsAreRefusedWithoutThem) {
  const std::string more = "train { steps: 6 } checkpoint { every_steps: 3 }";
  const TemporaryDirectory folder;
  rethrow_first(run_on_ranks(tiny_run(folder, local_sgd("inner_steps: 4", more)), folder, 2));
  for (const int ranks : {1, 2}) {
    const auto errors = run_on_ranks(tiny_run(folder, more), folder, ranks);
    expect_error<CheckpointError>([&] { std::rethrow_exception(errors[0]); },
                                  "2 ranks took steps of their own", "model.weights");
  }
}

TEST(LocalSteps, EvaluatingAndSamplingUseTheSharedWeightsAndChangeNothing) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, local_sgd("inner_steps: 4"));
  const std::vector<Trace> plain = traces(config, 2, 6);
  const std::vector<Trace> looked = trained_on_ranks(config, 2, [](Trainer& trainer) {
    Trace result;
    for (int step = 0; step < 6; ++step) {
      const StepResult found = trainer.step();
      result.losses.push_back(found.loss);
      result.norms.push_back(found.grad_norm);
      (void)trainer.evaluate(2);
      (void)trainer.sample_text(4, 1);
    }
    result.weights = trace(trainer, 0).weights;
    return result;
  });
  EXPECT_EQ(looked, plain);
}

TEST(LocalSteps, ThePlanKnowsTheBytesThatAreSent) {
  const TemporaryDirectory folder;
  for (const char* bits : {"32", "8", "4"}) {
    const config::RunConfig config =
        tiny_run(folder, local_sgd("inner_steps: 5 fragments: 2 bits: " + std::string(bits),
                                   "train { steps: 1000 } optimizer { clip_grad_norm: 0 }"));
    const RunPlan plan = plan_run(config, 2);
    const std::vector<int64_t> sent = trained_on_ranks(config, 2, [](Trainer& trainer) {
      int64_t bytes = 0;
      for (int step = 0; step < 5; ++step) bytes += trainer.step().sent_bytes;
      return bytes;
    });
    const double small = 5 * 200;  // losses, counts and norms
    const RunPlan::Communication& planned = plan.communication;
    const auto all =
        static_cast<double>(planned.all_reduce + planned.all_gather + planned.all_to_all);
    EXPECT_NEAR(static_cast<double>(sent[1]), 5 * all, small + 0.02 * 5 * all) << bits;
  }
}

TEST(LocalSteps, CheckpointsOfOneFileAreRefused) {
  const TemporaryDirectory folder;
  const auto errors =
      run_on_ranks(tiny_run(folder, local_sgd("", "checkpoint { files: WHOLE }")), folder, 2);
  expect_error<ConfigError>([&] { std::rethrow_exception(errors[0]); }, "checkpoint.files",
                            "parallel.local_sgd");
}

}  // namespace
}  // namespace lockstep::train
