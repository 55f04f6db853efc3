#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "tests/configs/examples.h"

namespace lockstep::config {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Error in the smallest config with the text of more.txtpb.
std::string refusal_with(const std::string& text) {
  RunConfig config;
  Origins origins;
  merge_text(config, origins, kSmallest, "base.txtpb");
  merge_text(config, origins, text, "more.txtpb");
  try {
    resolve(config, origins);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

/// Error with `more`, where the fourth line sets optimizer_in_backward.
std::string refusal(const std::string& more) {
  return refusal_with("\n\noptimizer {\n  optimizer_in_backward: true\n" + more);
}

TEST(OptimizerInBackward, IsOffUnlessAskedFor) {
  EXPECT_FALSE(load_text(kSmallest).optimizer().optimizer_in_backward());
}

TEST(OptimizerInBackward, IsAcceptedWhereNothingNeedsAllGradientsFirst) {
  EXPECT_EQ(refusal("clip_grad_norm: 0 }"), "no error");
  EXPECT_EQ(refusal("clip_grad_norm: 0 } train { loss_spike { action: NOTE } }"), "no error");
  EXPECT_EQ(refusal("clip_grad_norm: 0 sgd {} } precision: BF16_MIXED"), "no error");
}

TEST(OptimizerInBackward, IsRefusedAtItsLineWithTheReason) {
  const auto expect_refusal = [](const std::string& more, const std::string& reason) {
    EXPECT_THAT(refusal(more), StartsWith("more.txtpb:4:"));
    EXPECT_THAT(refusal(more), HasSubstr(reason));
  };
  expect_refusal("}", "expected optimizer.clip_grad_norm: 0, got 1");
  expect_refusal("clip_grad_norm: 0 } precision: F16_MIXED", "got F16_MIXED");
  expect_refusal("clip_grad_norm: 0 } train { non_finite: SKIP }",
                 "expected train.non_finite: STOP, got SKIP");
  expect_refusal("clip_grad_norm: 0 } train { non_finite: ROLLBACK }", "got ROLLBACK");
  expect_refusal("clip_grad_norm: 0 } train { loss_spike { action: SKIP } }",
                 "expected train.loss_spike.action: KEEP or NOTE, got SKIP");
  expect_refusal("clip_grad_norm: 0 } train { loss_spike { action: ROLLBACK } }", "got ROLLBACK");
  expect_refusal("clip_grad_norm: 0 } audit { every_steps: 5 }",
                 "expected audit.every_steps: 0, got 5");
  expect_refusal(
      "clip_grad_norm: 0 } reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 }",
      "got BITWISE");
}

std::string refused(const std::string& assignment) {
  try {
    smallest_with({assignment});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Muon, HasItsOwnLearningRateAndAdamWForTheOtherParameters) {
  const RunConfig config = smallest_with({"optimizer.muon.adamw.beta2=0.99"});
  EXPECT_EQ(config.optimizer().learning_rate(), 3e-4);
  EXPECT_EQ(config.optimizer().muon().learning_rate(), 0.02);
  EXPECT_EQ(config.optimizer().muon().momentum(), 0.95);
  EXPECT_TRUE(config.optimizer().muon().nesterov());
  EXPECT_EQ(config.optimizer().muon().iterations(), 5);
  EXPECT_EQ(config.optimizer().muon().adamw().beta1(), 0.9);
  EXPECT_EQ(config.optimizer().muon().adamw().beta2(), 0.99);
}

TEST(Muon, RefusesValuesOutsideTheirRanges) {
  EXPECT_THAT(refused("optimizer.muon.learning_rate=0"),
              HasSubstr("optimizer.muon.learning_rate is 0: expected"));
  EXPECT_THAT(refused("optimizer.muon.momentum=1"),
              HasSubstr("optimizer.muon.momentum is 1: expected"));
  EXPECT_THAT(refused("optimizer.muon.momentum=0"),
              HasSubstr("optimizer.muon.momentum is 0: expected"));
  EXPECT_THAT(refused("optimizer.muon.iterations=0"),
              HasSubstr("optimizer.muon.iterations is 0: expected"));
}

TEST(Muon, RanksShareItsMatricesWhereTheyTakeEveryStepTogether) {
  EXPECT_FALSE(smallest_with({"optimizer.muon={}"}).optimizer().muon().share_ranks());
  EXPECT_EQ(refused("optimizer.muon.share_ranks=true"), "no error");
  const std::string shared = "clip_grad_norm: 0 muon { share_ranks: true } }";
  EXPECT_THAT(refusal(shared), HasSubstr("optimizer.muon.share_ranks does not go with "
                                         "optimizer.optimizer_in_backward: "));
  const auto with = [](const char* more) {
    return refusal_with("optimizer { muon { share_ranks: true } } " + std::string(more));
  };
  EXPECT_THAT(with("parallel { elastic {} }"), HasSubstr("does not go with parallel.elastic: "));
  EXPECT_THAT(with("parallel { local_sgd {} }"),
              HasSubstr("does not go with parallel.local_sgd: "));
}

TEST(Muon, MayUpdateInBackward) { EXPECT_EQ(refusal("clip_grad_norm: 0 muon {} }"), "no error"); }

TEST(ParameterGroups, TakeTheirWeightDecayFromTheOptimizer) {
  const RunConfig config =
      load_text(std::string(kSmallest) +
                "optimizer { weight_decay: 0.3 groups { parameters: \"a\" } "
                "groups { parameters: [\"b\", \"c\"] weight_decay: 0 learning_rate_factor: 2 } }");
  ASSERT_EQ(config.optimizer().groups_size(), 2);
  EXPECT_EQ(config.optimizer().groups(0).weight_decay(), 0.3);
  EXPECT_EQ(config.optimizer().groups(0).learning_rate_factor(), 1);
  EXPECT_EQ(config.optimizer().groups(1).weight_decay(), 0);
  EXPECT_EQ(config.optimizer().groups(1).parameters_size(), 2);
}

TEST(ParameterGroups, NeedPatterns) {
  const auto refusal_of = [](const std::string& group) -> std::string {
    try {
      load_text(std::string(kSmallest) + "optimizer { groups { " + group + " } }");
    } catch (const SourceError& error) {
      return error.problem();
    }
    return "no error";
  };
  EXPECT_THAT(refusal_of("weight_decay: 0"),
              StartsWith("optimizer.groups[0].parameters is required"));
  EXPECT_EQ(refusal_of("parameters: [\"a\", \"\"]"),
            "optimizer.groups[0].parameters has an empty pattern: expected patterns of names, such "
            "as \"*.bias\".");
  EXPECT_EQ(refusal_of("parameters: \"a\""), "no error");
}

/// Error with such a schedule that is to fit a limit, and `more`.
std::string refusal_to_fit(const std::string& schedule, const std::string& more) {
  return refusal_with("schedule {\n  fit_time_limit: true " + schedule + " }\n" + more);
}

TEST(FitTimeLimit, NeedsAScheduleThatEndsTheRunAndWarmUpOfOneThatFallsAtOnce) {
  const std::string limit = "train { steps: 100 time_limit_seconds: 9 }";
  EXPECT_EQ(refusal_to_fit("kind: WSD", limit), "no error");
  EXPECT_EQ(refusal_to_fit("kind: INVERSE_SQRT cooldown_steps: 0", limit), "no error");
  EXPECT_EQ(refusal_to_fit("kind: WSD cooldown_steps: 100", limit), "no error");
  EXPECT_EQ(refusal_to_fit("warmup_steps: 10", limit), "no error");
  EXPECT_EQ(refusal_to_fit("kind: LINEAR warmup_steps: 200", limit), "no error");
  EXPECT_EQ(refusal_to_fit("kind: WSD", ""), "no error") << "all steps fit";
  EXPECT_THAT(refusal_to_fit("kind: CONSTANT", limit), StartsWith("more.txtpb:2:"));
  EXPECT_THAT(refusal_to_fit("kind: CONSTANT", limit),
              HasSubstr("expected another schedule.kind than CONSTANT"));
  for (const std::string kind : {"COSINE", "LINEAR"}) {
    EXPECT_THAT(refusal_to_fit("warmup_steps: 9 kind: " + kind, limit),
                HasSubstr("before the rate of " + kind +
                          " falls: expected schedule.warmup_steps of at least 10, got 9"));
  }
  EXPECT_THAT(refusal_to_fit("kind: WSD decay_steps: 50", limit),
              HasSubstr("expected schedule.decay_steps to be train.steps, 100, got 50"));
}

}  // namespace
}  // namespace lockstep::config
