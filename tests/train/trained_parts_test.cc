// model.freeze and model.lora: what is trained, on any number of ranks, and what is written.

#include "train/trained_parts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "nn/adapters/lora.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "train/weights.h"
#include "train/weights/safetensors.h"

namespace lockstep::train {
namespace {

const std::string kLora = "model { lora { rank: 2 alpha: 6 } } ";

TEST(FitsPattern, LeadingPartsMayBeLeftOut) {
  EXPECT_TRUE(fits_pattern("h.0.mlp.c_fc", "c_fc"));
  EXPECT_TRUE(fits_pattern("h.0.mlp.c_fc", "mlp.*"));
  EXPECT_TRUE(fits_pattern("h.0.mlp.c_fc", "h.?.mlp.c_fc"));
  EXPECT_TRUE(fits_pattern("h.0.mlp.c_fc", "*"));
  EXPECT_FALSE(fits_pattern("h.0.mlp.c_fc", "fc"));
  EXPECT_FALSE(fits_pattern("h.0.mlp.c_fc", "mlp"));
  EXPECT_FALSE(fits_pattern("h.10.mlp.c_fc", "h.?.mlp.c_fc"));
}

std::string bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), tensor.nbytes()};
}

/// The names of parameters that three steps change.
std::vector<std::string> changed_names(const config::RunConfig& config) {
  Trainer trainer = Trainer::create(config);
  std::vector<std::string> before, names;
  for (const Tensor& each : trainer.task().model().parameters()) before.push_back(bytes_of(each));
  for (int i = 0; i < 3; ++i) trainer.step();
  size_t i = 0;
  for (const nn::NamedParameter& each : trainer.task().model().named_parameters()) {
    if (bytes_of(each.tensor) != before[i++]) names.push_back(each.name);
  }
  return names;
}

TEST(Freeze, ParametersOfThePatternsKeepTheirBits) {
  const TemporaryDirectory folder;
  const config::RunConfig config = layered_run(folder,
                                               "model { freeze: [\"wte\", \"wpe\", \"h.0\", "
                                               "\"h.1.attn.*\", \"*.bias\", \"ln_1\", \"ln_2\"] }");
  EXPECT_EQ(
      changed_names(config),
      (std::vector<std::string>{"h.1.mlp.c_fc.weight", "h.1.mlp.c_proj.weight", "ln_f.weight"}));
}

TEST(Freeze, FrozenParametersHaveNoOptimizerState) {
  const TemporaryDirectory folder;
  for (const char* kind : {"adamw {}", "sgd {}", "muon {}"}) {
    Trainer trainer = Trainer::create(layered_run(
        folder, std::string("model { freeze: [\"h.0\", \"wte\"] } optimizer { ") + kind + " }"));
    trainer.step();
    for (const nn::StoredParameter& each : trainer.optimizer().state()) {
      EXPECT_EQ(each.name.find(".h.0."), std::string::npos) << each.name;
      EXPECT_EQ(each.name.find("wte"), std::string::npos) << each.name;
    }
  }
}

TEST(Freeze, APatternThatFitsNothingIsRefused) {
  const TemporaryDirectory folder;
  expect_error<ConfigError>(
      [&] { Trainer::create(layered_run(folder, "model { freeze: [\"h.0\", \"embed\"] }")); },
      "[model.freeze] no parameter or module is named \"embed\": expected a pattern of "
      "wte.weight, wpe.weight, h.0.ln_1.weight");
  expect_error<ConfigError>(
      [&] { Trainer::create(layered_run(folder, "model { freeze: \"*\" }")); },
      "[model.freeze] every parameter is frozen");
  EXPECT_THROW(layered_run(folder, "model { freeze: \"\" }"), config::SourceError);
}

TEST(Lora, OnlyAdaptersAreTrained) {
  const TemporaryDirectory folder;
  for (const std::string& name : changed_names(layered_run(folder, kLora))) {
    EXPECT_TRUE(nn::is_lora_parameter(name)) << name;
  }
  Trainer trainer = Trainer::create(layered_run(folder, kLora));
  EXPECT_EQ(nn::adapted_layers(trainer.task().model()).size(), 8u);
  EXPECT_EQ(trainer.optimizer().state().size(), 2 * 2 * 8u);
}

TEST(Lora, TheLossFalls) {
  const TemporaryDirectory folder;
  const Trace run =
      trace(layered_run(folder,
                        "model { lora { rank: 8 } } train { steps: 60 } optimizer { learning_rate: "
                        "3e-2 }"),
            60);
  EXPECT_LT(run.losses.back(), run.losses.front() - 0.1);
}

TEST(Lora, TargetsChooseLayersAndMustFitOne) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      layered_run(folder, "model { lora { targets: [\"c_attn\", \"h.1.mlp.*\"] } }");
  Trainer trainer = Trainer::create(config);
  std::vector<std::string> paths;
  for (const nn::Linear* each : nn::adapted_layers(trainer.task().model())) {
    paths.push_back(each->path());
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"h.0.attn.c_attn", "h.1.attn.c_attn", "h.1.mlp.c_fc",
                                             "h.1.mlp.c_proj"}));
  expect_error<ConfigError>(
      [&] { Trainer::create(layered_run(folder, "model { lora { targets: \"q_proj\" } }")); },
      "[model.lora.targets] no layer that can have an adapter is named \"q_proj\"",
      "h.0.attn.c_attn");
  const std::string llama =
      "model { llama { vocab_size: 256 context_length: 16 layers: 1 heads: 2 width: 16 } lora { ";
  expect_error<ConfigError>(
      [&] { Trainer::create(layered_run(folder, llama + "targets: \"lm_head\" } }")); },
      "is named \"lm_head\"");
  Trainer whole = Trainer::create(layered_run(folder, llama + "} }"));
  EXPECT_EQ(nn::adapted_layers(whole.task().model()).size(), 7u);
}

/// What is trained of a model, in all ways.
const char* const kPartlyTrained[] = {
    "model { lora { rank: 2 dropout: 0.2 } }",
    "model { lora { rank: 2 targets: \"h.1.attn.*\" } checkpoint_every: 1 }",
    "model { freeze: [\"wte\", \"h.0\", \"*.bias\"] }",
    "model { freeze: \"h.1.mlp\" } precision: BF16_MIXED",
    "model { llama { vocab_size: 300 context_length: 16 layers: 2 heads: 2 kv_heads: 1 width: 64 } "
    "lora {} }"};

TEST(PartlyTrained, NumberOfRanksAndStrategyChangeNoBitWithBitwise) {
  const TemporaryDirectory folder;
  for (const char* more : kPartlyTrained) {
    const std::string base = std::string(
                                 "reproducibility: BITWISE train { batch_size: 8 "
                                 "micro_batch_size: 1 } ") +
                             more;
    const Trace one = trace(layered_run(folder, base), 4);
    for (const char* strategy :
         {"DDP", "FULL_SHARD", "SHARD_GRAD_OP", "SHARD_OPTIMIZER", "HYBRID_SHARD shard_size: 2"}) {
      const config::RunConfig config =
          layered_run(folder, base + " parallel { strategy: " + strategy + " }");
      for (const int ranks : {2, 4}) {
        for (const Trace& each : traces(config, ranks, 4)) {
          EXPECT_EQ(each, one) << strategy << ", " << more << ", " << ranks << " ranks";
        }
      }
    }
  }
}

TEST(PartlyTrained, UpdatesDuringBackwardHaveTheSameBits) {
  const TemporaryDirectory folder;
  const std::string base = kLora + "optimizer { clip_grad_norm: 0 } ";
  const Trace at_the_end = trace(layered_run(folder, base), 4);
  EXPECT_EQ(
      trace(layered_run(folder, base + "optimizer { optimizer_in_backward: true }"), 4).weights,
      at_the_end.weights);
}

TEST(PartlyTrained, AStoppedRunGoesOnWithTheSameBits) {
  const std::string steps = " train { steps: 8 }";
  for (const std::string& more : {kLora + steps, "model { freeze: [\"h.0\", \"wte\"] }" + steps}) {
    expect_exact_resume(more, 1);
    expect_exact_resume(more, 2);
    expect_exact_resume(more + " parallel { strategy: FULL_SHARD }", 2);
  }
}

/// Loss of the held-out data by the model of a folder.
double loss_of_folder(const config::RunConfig& config, const std::filesystem::path& folder) {
  config::RunConfig plain = config;
  plain.mutable_model()->clear_lora();
  plain.mutable_model()->set_weights("");
  const std::unique_ptr<Task> task = build_task(plain);
  const std::unique_ptr<nn::LanguageModel> model = load_model(folder);
  task->model().load_state_dict(model->state_dict());
  return task->evaluate({})->loss;
}

TEST(Lora, TheModelOfTheEndHasTheAdaptersInItsWeights) {
  for (const char* strategy : {"DDP", "FULL_SHARD"}) {
    const TemporaryDirectory folder;
    const config::RunConfig config =
        layered_run(folder, std::string("parallel { strategy: ") + strategy + " } " + kLora +
                                " optimizer { learning_rate: 1e-2 }");
    rethrow_first(run_on_ranks(config, folder, 2));
    const std::filesystem::path run = folder / "run";
    const SafetensorsFile file(run / "model.safetensors");
    for (const TensorRecord& each : file.tensors()) {
      EXPECT_FALSE(nn::is_lora_parameter(each.name)) << each.name;
    }
    const std::filesystem::path checkpoint = list_checkpoints(run / "checkpoints").back().path;
    // With adapters, as it was trained.
    const std::unique_ptr<Task> task = build_task(config);
    load_weights(task->model(),
                 strategy == std::string("DDP") ? checkpoint / "model.safetensors" : checkpoint);
    const double trained = task->evaluate({})->loss;
    EXPECT_NEAR(loss_of_folder(config, run), trained, 1e-4);
    EXPECT_NEAR(loss_of_folder(config, checkpoint), trained, 1e-4);
    // The model of the end, in the model of the config: new adapters change nothing.
    const std::unique_ptr<Task> merged = build_task(config);
    load_weights(merged->model(), run / "model.safetensors");
    EXPECT_NEAR(merged->evaluate({})->loss, trained, 1e-4);
  }
}

TEST(Lora, AFinishedRunThatIsStartedAgainWritesNothing) {
  const TemporaryDirectory folder;
  const config::RunConfig config = layered_run(folder, kLora + "train { steps: 2 }");
  rethrow_first(run_on_ranks(config, folder, 1));
  const auto written = std::filesystem::last_write_time(folder / "run" / "model.safetensors");
  rethrow_first(run_on_ranks(config, folder, 1));
  EXPECT_EQ(std::filesystem::last_write_time(folder / "run" / "model.safetensors"), written);
}

TEST(Lora, AdaptersAreWrittenAsPeftReadsThem) {
  const TemporaryDirectory folder;
  rethrow_first(run_on_ranks(layered_run(folder, kLora + "train { steps: 2 }"), folder, 1));
  const std::filesystem::path adapter = folder / "run" / "adapter";
  const SafetensorsFile file(adapter / "adapter_model.safetensors");
  EXPECT_EQ(file.tensors().size(), 16u);
  const std::string layer = "base_model.model.transformer.h.0.mlp.c_fc.";
  EXPECT_EQ(file.at(layer + "lora_A.weight").shape, (std::vector<int64_t>{2, 16}));
  EXPECT_EQ(file.at(layer + "lora_B.weight").shape, (std::vector<int64_t>{64, 2}));
  const std::string config = file_content(adapter / "adapter_config.json");
  for (const char* part : {"\"peft_type\": \"LORA\"", "\"r\": 2", "\"lora_alpha\": 6.0",
                           "\"h.0.mlp.c_fc\"", "\"fan_in_fan_out\": true"}) {
    EXPECT_NE(config.find(part), std::string::npos) << part << " in " << config;
  }
}

/// A run on `base` that goes on with the adapters of the run in `first`.
config::RunConfig with_adapters_of(const TemporaryDirectory& first, const TemporaryDirectory& own,
                                   const std::string& base, const std::string& more) {
  return layered_run(own, kLora + base + "model { lora { weights: \"" +
                              (first / "run" / "adapter").string() + "\" } } " + more);
}

TEST(Lora, ARunBeginsWithTheAdaptersOfAnother) {
  const TemporaryDirectory root, first, second, third;
  rethrow_first(run_on_ranks(layered_run(root, "train { steps: 5 }"), root, 1));
  const std::string base = "model { weights: \"" + (root / "run").string() + "\" } ";
  const std::string some = "model { lora { targets: [\"c_attn\", \"h.1.mlp.c_fc\"] } } ";
  rethrow_first(run_on_ranks(
      layered_run(first, kLora + base + some + "optimizer { learning_rate: 1e-2 }"), first, 1));
  const config::RunConfig config = with_adapters_of(first, second, base, "train { steps: 4 }");
  const std::unique_ptr<Task> task = build_task(config);
  EXPECT_EQ(nn::adapted_layers(task->model()).size(), 3u);
  const double trained = loss_of_folder(config, first / "run");
  EXPECT_NEAR(task->evaluate({})->loss, trained, 1e-4);
  EXPECT_GT(std::abs(trained - loss_of_folder(config, root / "run")), 1e-3);
  for (const nn::NamedParameter& each : task->model().named_parameters()) {
    EXPECT_EQ(each.tensor.requires_grad(), nn::is_lora_parameter(each.name)) << each.name;
  }
  const std::string steps = "train { steps: 4 } ";
  rethrow_first(run_on_ranks(config, second, 1));
  rethrow_first(run_on_ranks(with_adapters_of(first, third, base, steps), third, 2));
  EXPECT_NEAR(loss_of_folder(config, second / "run"), loss_of_folder(config, third / "run"), 1e-4);
}

TEST(Lora, RunsThatShardBeginWithTheSameAdaptersToTheBit) {
  const TemporaryDirectory root, first, alone;
  rethrow_first(run_on_ranks(layered_run(root, "train { steps: 2 }"), root, 1));
  const std::string base = "model { weights: \"" + (root / "run").string() + "\" } ";
  rethrow_first(run_on_ranks(
      layered_run(first, kLora + base + "train { steps: 2 } optimizer { learning_rate: 1e-2 }"),
      first, 1));
  const std::string bitwise =
      "reproducibility: BITWISE train { steps: 2 batch_size: 8 micro_batch_size: 1 } ";
  rethrow_first(run_on_ranks(with_adapters_of(first, alone, base, bitwise), alone, 1));
  for (const char* strategy :
       {"DDP", "FULL_SHARD", "SHARD_GRAD_OP", "SHARD_OPTIMIZER", "HYBRID_SHARD shard_size: 2"}) {
    const TemporaryDirectory own;
    const config::RunConfig config =
        with_adapters_of(first, own, base, bitwise + "parallel { strategy: " + strategy + " }");
    rethrow_first(run_on_ranks(config, own, 2));
    EXPECT_EQ(weights_of(own), weights_of(alone)) << strategy;
  }
}

TEST(Lora, AdaptersOfAnotherRankAreRefused) {
  const TemporaryDirectory first, second;
  rethrow_first(run_on_ranks(layered_run(first, kLora + "train { steps: 1 }"), first, 1));
  const std::string base = "model { weights: \"" + (first / "run").string() + "\" } ";
  expect_error<ConfigError>(
      [&] { Trainer::create(with_adapters_of(first, second, base, "model { lora { rank: 4 } }")); },
      "[model.lora.weights] the adapters in ", " have rank 2 and alpha 6: got 4 and 6. Set ");
}

TEST(Lora, FineTuningBeginsWithTheWeightsOfAnotherRun) {
  for (const int ranks : {1, 2}) {
    const TemporaryDirectory first, second;
    rethrow_first(run_on_ranks(layered_run(first, "train { steps: 10 }"), first, 1));
    const std::string weights = "model { weights: \"" + (first / "run").string() + "\" } ";
    const config::RunConfig config = layered_run(
        second, kLora + weights + "train { steps: 2 } parallel { strategy: FULL_SHARD }");
    rethrow_first(run_on_ranks(config, second, ranks));
    const double before = loss_of_folder(config, first / "run");
    const double after = loss_of_folder(config, second / "run");
    EXPECT_NEAR(after, before, 0.5);
    EXPECT_NE(after, before);
  }
}

}  // namespace
}  // namespace lockstep::train
