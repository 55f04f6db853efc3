// optimizer.groups: learning rates and weight decays by patterns of names.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "train/trained_parts.h"

namespace lockstep::train {
namespace {

const std::string kGroups =
    "optimizer { groups { parameters: [\"wte\", \"h.0.attn\"] learning_rate_factor: 0.25 } "
    "groups { parameters: \"*.c_fc.weight\" learning_rate_factor: 3 weight_decay: 0.7 } "
    "groups { parameters: \"ln_1\" learning_rate_factor: 0 } clip_grad_norm: 0 } ";

struct HandMadeGroup {
  double rate_factor = 1;
  double weight_decay = 0.1;
};

/// The group of kGroups that a parameter is in, by hand.
HandMadeGroup group_by_hand(const std::string& name) {
  if (name == "wte.weight" || name.starts_with("h.0.attn.")) return {0.25, 0.1};
  if (name.ends_with(".mlp.c_fc.weight")) return {3, 0.7};
  if (name.find("ln_1.") != name.npos) return {0, 0.1};
  return {};
}

/// Trains for `steps` steps with an optimizer of PyTorch's form, a group for each parameter.
template <class OptimizerKind, class Options>
std::vector<Tensor> trained_by_hand(const config::RunConfig& config, Options options, int steps) {
  const std::unique_ptr<Task> task = build_task(config);
  std::unique_ptr<OptimizerKind> optimizer;
  std::vector<double> factors;
  for (const nn::NamedParameter& each : task->model().named_parameters()) {
    const HandMadeGroup group = group_by_hand(each.name);
    options.weight_decay = each.tensor.dim() >= 2 ? group.weight_decay : 0;
    factors.push_back(group.rate_factor);
    const std::vector<Tensor> alone = {each.tensor};
    if (optimizer) {
      optimizer->add_group(alone, options);
    } else {
      optimizer = std::make_unique<OptimizerKind>(alone, options);
    }
  }
  const LearningRateSchedule schedule = build_schedule(config);
  for (int step = 0; step < steps; ++step) {
    for (size_t i = 0; i < factors.size(); ++i) {
      optimizer->set_learning_rate(schedule.learning_rate(step) * factors[i], i);
    }
    optimizer->zero_grad();
    const SummedLoss loss = task->forward(step, 0, 8);
    (loss.sum / static_cast<double>(loss.targets)).backward();
    optimizer->step();
  }
  return task->model().parameters();
}

std::vector<Tensor> trained_by_groups(const config::RunConfig& config, int steps) {
  Trainer trainer = Trainer::create(config);
  for (int step = 0; step < steps; ++step) trainer.step();
  return trainer.task().model().parameters();
}

void expect_close(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  const NoGradGuard no_grad;
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT(max(abs(found[i] - expected[i])).item<double>(), 1e-5) << i;
  }
}

class Groups : public testing::Test {
 protected:
  config::RunConfig run(const std::string& more) const {
    return layered_run(folder_, "model { gpt2 { dropout: 0 } } " + more);
  }
  TemporaryDirectory folder_;
};

TEST_F(Groups, TrainAsGroupsOfPyTorchsFormDo) {
  expect_close(trained_by_groups(run(kGroups), 6),
               trained_by_hand<optim::AdamW>(run(kGroups),
                                             optim::AdamWOptions{.beta1 = 0.9, .beta2 = 0.95}, 6));
}

TEST_F(Groups, ThatChangeNothingKeepTheBits) {
  const Trace plain = trace(run(""), 4);
  EXPECT_EQ(trace(run("optimizer { groups { parameters: \"h\" } }"), 4), plain);
  EXPECT_NE(trace(run(kGroups), 4), trace(run("optimizer { clip_grad_norm: 0 }"), 4));
}

TEST_F(Groups, ActWithEveryRule) {
  for (const char* rule : {"adamw {}", "sgd {}", "muon {}", "lion {}", "adafactor {}"}) {
    const std::string chosen = std::string("optimizer { ") + rule + " } ";
    Trainer trainer = Trainer::create(
        run(chosen + "optimizer { groups { parameters: \"h.0\" learning_rate_factor: 0 } "
                     "groups { parameters: \"wpe\" learning_rate_factor: 0.5 weight_decay: 5 } }"));
    Trainer plain = Trainer::create(run(chosen));
    const auto values = [](Trainer& of) {
      std::vector<Tensor> copies;
      for (const Tensor& each : of.task().model().parameters())
        copies.push_back(each.detach().clone());
      return copies;
    };
    const std::vector<Tensor> before = values(trainer);
    trainer.step();
    plain.step();
    const std::vector<Tensor> after = values(trainer), of_plain = values(plain);
    size_t i = 0;
    for (const nn::NamedParameter& each : trainer.task().model().named_parameters()) {
      const bool stays = each.name.starts_with("h.0.");
      EXPECT_EQ(equal(after[i], before[i]), stays) << rule << " " << each.name;
      const bool is_special = stays || each.name == "wpe.weight";
      EXPECT_EQ(equal(after[i], of_plain[i]), !is_special) << rule << " " << each.name;
      ++i;
    }
  }
}

TEST_F(Groups, RanksStrategiesAndEarlyUpdatesChangeNoBit) {
  const std::string base =
      kGroups + "reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 } ";
  const Trace one = trace(run(base), 3);
  for (const char* strategy : {"DDP", "SHARD_OPTIMIZER", "FULL_SHARD"}) {
    const std::string parallel = fmt::format("parallel {{ strategy: {} }} ", strategy);
    for (const Trace& each : traces(run(base + parallel), 4, 3)) EXPECT_EQ(each, one) << strategy;
  }
  const Trace late = trace(run(kGroups), 3);
  EXPECT_EQ(trace(run(kGroups + "optimizer { optimizer_in_backward: true }"), 3).weights,
            late.weights);
}

TEST_F(Groups, AResumedRunGoesOnWithTheSameBits) { expect_exact_resume(kGroups, 2); }

TEST_F(Groups, APatternThatFitsNothingTrainedIsNamed) {
  const auto complaint = [&](const std::string& more) {
    return message_of<ConfigError>([&] { Trainer::create(run(more)); });
  };
  EXPECT_TRUE(says(complaint("optimizer { groups { parameters: [\"wte\", \"q_proj\"] } }"),
                   "[optimizer.groups.parameters] no parameter or module that is trained is named "
                   "\"q_proj\": expected a pattern of wte.weight, wpe.weight, "));
  EXPECT_TRUE(
      says(complaint("model { freeze: \"wpe\" } optimizer { groups { parameters: \"wpe\" } }"),
           "named \"wpe\": expected a pattern of wte.weight, h.0"));
}

}  // namespace
}  // namespace lockstep::train
