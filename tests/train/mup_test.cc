// model.mup: what it changes of a run, and what it does not.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "train/architectures.h"
#include "train/weights.h"
#include "train/weights/hugging_face_folder.h"
#include "train/weights/multiplier_files.h"

namespace lockstep::train {
namespace {

/// The width of `tiny_run` is 16.
const std::string kQuarter =
    "model { mup { base_width: 4 input_multiplier: 2 output_multiplier: 3 } } ";
const std::string kScaledLlama =
    "model { llama { vocab_size: 300 context_length: 16 layers: 2 heads: 2 kv_heads: 1 width: 16 } "
    "} ";

class MupRuns : public testing::Test {
 protected:
  config::RunConfig run(const std::string& more) const { return layered_run(folder_, more); }
  TemporaryDirectory folder_;
};

TEST_F(MupRuns, OfTheBaseWidthKeepAllBits) {
  const std::string base = "model { mup { base_width: 16 } } ";
  for (const std::string rule :
       {"adamw {}", "sgd {}", "lion {}", "muon {}",
        "groups { parameters: \"h.0\" learning_rate_factor: 0.5 weight_decay: 0.3 }"}) {
    const std::string chosen = "optimizer { " + rule + " } ";
    EXPECT_EQ(trace(run(base + chosen), 4), trace(run(chosen), 4)) << rule;
  }
  EXPECT_EQ(trace(run(kScaledLlama + base), 4), trace(run(kScaledLlama), 4));
  EXPECT_NE(trace(run(kQuarter), 4), trace(run(""), 4));
}

/// How far each parameter moves in one step with the gradients `gradient`, without its decay, and
/// how far decay moves it where the gradients are 0.
struct Moves {
  std::string name;
  double step = 0, decay = 0;
  bool is_matrix = false;
};

std::vector<Moves> moves_of(const config::RunConfig& config, double gradient) {
  const NoGradGuard no_grad;
  const std::unique_ptr<Task> task = build_task(config);
  const std::vector<nn::NamedParameter> parameters = task->model().named_parameters();
  std::vector<Moves> moves;
  std::vector<Tensor> ones_of, zeros_of;
  for (const nn::NamedParameter& each : parameters) {
    each.tensor.fill_(1);
    ones_of.push_back(ones_like(each.tensor) * gradient);
    zeros_of.push_back(zeros_like(each.tensor));
    moves.push_back(
        {each.name, 0, 0, each.tensor.dim() >= 2 && is_hidden_layer(config.model(), each.name)});
  }
  const auto moved = [&](const std::vector<Tensor>& gradients) {
    build_optimizer(config, parameters)->step(gradients, 0.01, 1);
    std::vector<double> result;
    for (const nn::NamedParameter& each : parameters) {
      result.push_back(1 - mean(each.tensor).item<double>());
      each.tensor.fill_(1);
    }
    return result;
  };
  const std::vector<double> decays = moved(zeros_of), all = moved(ones_of);
  for (size_t i = 0; i < moves.size(); ++i) {
    moves[i].decay = decays[i];
    moves[i].step = all[i] - decays[i];
  }
  return moves;
}

TEST_F(MupRuns, StepsFollowTheWidthAndDecaysDoNot) {
  struct Case {
    const char* rule;
    double matrix, vector;  ///< expected factors of the steps at 4 times the base width
  };
  for (const Case& each : {Case{"adamw {}", 0.25, 1}, Case{"lion {}", 0.25, 1},
                           Case{"sgd { momentum: 0 }", 1, 4}, Case{"muon {}", 1, 1}}) {
    const std::string rule =
        std::string("optimizer { ") + each.rule +
        " groups { parameters: \"h.1\" learning_rate_factor: 2 weight_decay: 0.5 } } ";
    const std::vector<Moves> plain = moves_of(run(rule), 0.5),
                             wide = moves_of(run(rule + kQuarter), 0.5);
    ASSERT_EQ(plain.size(), wide.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      const double factor = plain[i].is_matrix ? each.matrix : each.vector;
      EXPECT_NEAR(wide[i].step, factor * plain[i].step, 5e-6) << each.rule << plain[i].name;
      EXPECT_NEAR(wide[i].decay, plain[i].decay, 5e-6) << each.rule << plain[i].name;
    }
  }
}

TEST_F(MupRuns, TheMatricesOfTheOptimizerAreThoseThatBeginSmaller) {
  const NoGradGuard no_grad;
  for (const std::string& model : {std::string(), kScaledLlama}) {
    const config::RunConfig scaled = run(model + "model { mup { base_width: 1 base_heads: 1 } }");
    const auto before = build_task(run(model)), after = build_task(scaled);
    const auto of_before = before->model().named_parameters();
    const auto of_after = after->model().named_parameters();
    for (size_t i = 0; i < of_before.size(); ++i) {
      const bool is_matrix =
          of_before[i].tensor.dim() >= 2 && is_hidden_layer(scaled.model(), of_before[i].name);
      const Tensor expected = of_before[i].tensor * (is_matrix ? 0.25 : 1.0);
      EXPECT_LE(max(abs(of_after[i].tensor - expected)).item<double>(), 1e-9) << of_before[i].name;
    }
  }
}

TEST_F(MupRuns, RanksAndStrategiesChangeNoBitWithBitwise) {
  const std::string base =
      kQuarter + "reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 } ";
  for (const std::string& model : {std::string(), kScaledLlama}) {
    const Trace one = trace(run(model + base), 3);
    for (const int ranks : {2, 4}) {
      for (const char* strategy : {"DDP", "SHARD_OPTIMIZER", "FULL_SHARD"}) {
        const std::string parallel = fmt::format("parallel {{ strategy: {} }} ", strategy);
        for (const Trace& each : traces(run(model + base + parallel), ranks, 3)) {
          EXPECT_EQ(each, one) << strategy << ranks;
        }
      }
    }
  }
}

TEST(MupResume, AStoppedRunEndsWithTheSameWeights) {
  expect_exact_resume(kQuarter + "train { steps: 7 } checkpoint { every_steps: 2 }", 1);
  expect_exact_resume(
      kQuarter +
          "train { steps: 7 batch_size: 8 micro_batch_size: 1 } checkpoint { "
          "every_steps: 2 } parallel { strategy: FULL_SHARD } reproducibility: BITWISE",
      2);
}

/// Logits of fixed tokens.
Tensor logits_of_model(nn::LanguageModel& model) {
  const NoGradGuard no_grad;
  model.eval();
  const Tensor ids = empty({2, 12}, DType::kI64);
  for (int64_t i = 0; i < ids.numel(); ++i) ids.data<int64_t>()[i] = 32 + i * 11 % 90;
  return model.forward(ids).clone();
}

void expect_same_logits(const Tensor& a, const Tensor& b) {
  const NoGradGuard no_grad;
  EXPECT_LE(max(abs(a - b)).item<double>(), 1e-5 * max(abs(a)).item<double>());
}

class MupFiles : public MupRuns, public testing::WithParamInterface<const char*> {
 protected:
  static std::string model() { return GetParam(); }
  /// A finished run, in "run", with its checkpoints.
  config::RunConfig finished() {
    const config::RunConfig config = run(model() + kQuarter +
                                         "train { steps: 4 } checkpoint { every_steps: 2 } "
                                         "optimizer { learning_rate: 0.03 }");
    rethrow_first(run_on_ranks(config, folder_, 1));
    return config;
  }
  std::string checkpoint() const {
    return (folder_ / "run" / "checkpoints" / "step-00000004").string();
  }
  std::string end() const { return (folder_ / "run").string(); }
  /// The logits of the model of a config that begins with `weights`.
  Tensor logits_from(const std::string& more, const std::string& weights) const {
    config::RunConfig config = run(model() + more);
    config.mutable_model()->set_weights(weights);
    return logits_of_model(*build_model(config));
  }
};

TEST_P(MupFiles, OfARunsEndHaveNoMultipliersAndComputeTheSame) {
  finished();
  const auto raw = load_model(checkpoint()), plain = load_model(end());
  EXPECT_FALSE(raw->mup().is_plain());
  EXPECT_TRUE(plain->mup().is_plain());
  expect_same_logits(logits_of_model(*raw), logits_of_model(*plain));
}

TEST_P(MupFiles, OtherProgramsDoNotKnowTheModelOfACheckpoint) {
  finished();
  EXPECT_TRUE(says(file_content(checkpoint() + "/config.json"), "_mup\""));
  EXPECT_FALSE(says(file_content(end() + "/config.json"), "mup"));
}

TEST_P(MupFiles, WeightsAreChangedForTheModelThatReadsThem) {
  finished();
  const Tensor expected = logits_of_model(*load_model(checkpoint()));
  const std::string other = "model { mup { base_width: 8 base_heads: 4 } } ";
  for (const std::string& from :
       {checkpoint(), checkpoint() + "/model.safetensors", end(), end() + "/model.safetensors"}) {
    for (const std::string& more : {std::string(), kQuarter, other}) {
      expect_same_logits(logits_from(more, from), expected);
    }
  }
}

TEST_P(MupFiles, ExportsNeedAModelWithoutMultipliers) {
  finished();
  const auto model = load_model(checkpoint());
  const Tensor expected = logits_of_model(*model);
  const std::filesystem::path out = folder_ / "out";
  expect_error<ConfigError>([&] { save_hugging_face(*model, out); },
                            "the model has multipliers of muP");
  nn::change_multipliers(*model, {});
  save_hugging_face(*model, out);
  expect_same_logits(logits_of_model(*load_model(out)), expected);
}

TEST_P(MupFiles, ACheckpointOfOtherMultipliersIsNotContinued) {
  finished();
  const std::string more = "train { steps: 6 } checkpoint { every_steps: 2 } ";
  expect_error<CheckpointError>(
      [&] {
        rethrow_first(
            run_on_ranks(run(model() + more + "model { mup { base_width: 8 } } "), folder_, 1));
      },
      "its model was scaled otherwise");
}

const std::string kBitwiseSteps =
    "train { steps: 4 batch_size: 8 micro_batch_size: 1 } optimizer { learning_rate: 0.03 } "
    "reproducibility: BITWISE ";
const std::string kSharded = "parallel { strategy: FULL_SHARD } checkpoint { every_steps: 2 } ";

TEST_P(MupFiles, OfAShardedRunAreThoseOfOneRank) {
  const TemporaryDirectory sharded, alone;
  const std::string more = model() + kQuarter + kBitwiseSteps;
  rethrow_first(run_on_ranks(layered_run(alone, more), alone, 1));
  rethrow_first(run_on_ranks(layered_run(sharded, more + kSharded), sharded, 2));
  EXPECT_EQ(weights_of(sharded), weights_of(alone));
  const std::filesystem::path run = sharded / "run";
  expect_same_logits(logits_of_model(*load_model(run / "checkpoints" / "step-00000004")),
                     logits_of_model(*load_model(run)));
}

TEST_P(MupFiles, AShardedRunMayBeginWithThoseOfOtherMultipliers) {
  finished();
  config::RunConfig alone = run(model() + kQuarter + kBitwiseSteps);
  config::RunConfig sharded = run(model() + kQuarter + kBitwiseSteps + kSharded);
  for (config::RunConfig* each : {&alone, &sharded}) each->mutable_model()->set_weights(end());
  const Trace one = trace(alone, 2);
  for (const Trace& each : traces(sharded, 2, 2)) EXPECT_EQ(each, one);
}

TEST_P(MupFiles, AShardedRunThatReadsThemBeginsAsOneRank) {
  finished();
  const auto weights_after = [&](int ranks, const std::string& more) {
    const TemporaryDirectory folder;
    config::RunConfig config =
        layered_run(folder, model() + kQuarter + kBitwiseSteps + "train { steps: 1 } " + more);
    config.mutable_model()->set_weights(end());
    rethrow_first(run_on_ranks(config, folder, ranks));
    return weights_of(folder);
  };
  EXPECT_EQ(weights_after(2, "parallel { strategy: FULL_SHARD } "), weights_after(1, ""));
}

std::string name_of_model(const testing::TestParamInfo<const char*>& info) {
  const char* const names[] = {"gpt2", "llama", "llama_tied"};
  return names[info.index];
}

INSTANTIATE_TEST_SUITE_P(
    Models, MupFiles,
    testing::Values("",
                    "model { llama { vocab_size: 300 context_length: 16 layers: 2 heads: 2 "
                    "kv_heads: 1 width: 16 } } ",
                    "model { llama { vocab_size: 300 context_length: 16 layers: 1 heads: 2 "
                    "width: 16 tie_embeddings: true } } "),
    name_of_model);

}  // namespace
}  // namespace lockstep::train
