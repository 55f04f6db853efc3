// train.weight_average: averages of the weights, in evaluations, checkpoints and the final model.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/ops/factory/factory.h"
#include "tests/train/rank_runs.h"
#include "train/optimizer/optimizer.h"
#include "train/weights/safetensors.h"

namespace lockstep::train {
namespace {

std::string averaged(const std::string& more = "", const char* decay = "0.5") {
  return std::string("train { weight_average { decay: ") + decay + " } } " + more;
}

std::vector<float> values_of(const Tensor& tensor) {
  const Tensor here = tensor.detach().to(kCPU).contiguous();
  return {here.data<float>(), here.data<float>() + here.numel()};
}

TEST(WeightAverage, FollowsTheFormulaFromTheWeightsAfterTheFirstStep) {
  const Tensor weight = ones({3, 2});
  Sgd optimizer({{"w", weight}}, {.momentum = 0, .weight_decay = 0});
  optimizer.keep_averages({{"w", weight}}, 0.75);
  EXPECT_EQ(optimizer.state_names(), std::vector<std::string>{"average"});
  double average = 0, value = 1;
  for (int i = 0; i < 6; ++i) {
    optimizer.step({full({3, 2}, i + 1.0)}, 0.5, 1);
    value -= 0.5 * (i + 1);
    average = i == 0 ? value : 0.75 * average + 0.25 * value;
    EXPECT_NEAR(values_of(optimizer.state()[0].tensor)[5], average, 1e-5);
    EXPECT_NEAR(values_of(weight)[5], value, 1e-5);
  }
  optimizer.exchange_averages();
  EXPECT_NEAR(values_of(weight)[0], average, 1e-5);
  EXPECT_NEAR(values_of(optimizer.state()[0].tensor)[0], value, 1e-5);
}

TEST(WeightAverage, ASkippedStepMovesNothing) {
  const Tensor weight = ones({4});
  Sgd optimizer({{"w", weight}}, {.momentum = 0, .weight_decay = 0});
  optimizer.keep_averages({{"w", weight}}, 0.75);
  const DeviceScalars skipped{.grad_factor = {}, .found_inf = ones({}, DType::kF32)};
  optimizer.step({ones({4})}, 1, 1, skipped);
  EXPECT_EQ(values_of(optimizer.state()[0].tensor)[0], 0);
  optimizer.step({ones({4})}, 1, 1);
  EXPECT_EQ(values_of(optimizer.state()[0].tensor)[0], 0) << "1 - 1, the weight after the first";
  optimizer.step({ones({4})}, 1, 1);
  EXPECT_EQ(values_of(optimizer.state()[0].tensor)[0], -0.25);
  optimizer.step({ones({4})}, 1, 1, skipped);
  EXPECT_EQ(values_of(optimizer.state()[0].tensor)[0], -0.25);
}

TEST(WeightAverage, ChangesNoBitOfTraining) {
  const TemporaryDirectory folder;
  for (const char* more : {"", "optimizer { muon {} }", "precision: BF16_MIXED"}) {
    EXPECT_EQ(trace(layered_run(folder, averaged(more)), 5), trace(layered_run(folder, more), 5));
  }
}

TEST(WeightAverage, EvaluationsUseTheAverageAndLeaveTheWeights) {
  const TemporaryDirectory folder;
  Trainer plain = Trainer::create(tiny_run(folder));
  Trainer with = Trainer::create(layered_run(folder, averaged("", "0.9")));
  Trainer without = Trainer::create(
      layered_run(folder, averaged("train { weight_average { evaluate: false } }", "0.9")));
  EXPECT_EQ(with.evaluate(0)->loss, plain.evaluate(0)->loss) << "there is no average yet";
  for (Trainer* each : {&plain, &with, &without}) {
    for (int i = 0; i < 5; ++i) each->step();
  }
  const std::string before = state_bytes(with);
  const double loss = with.evaluate(0)->loss;
  EXPECT_EQ(state_bytes(with), before);
  EXPECT_NE(loss, plain.evaluate(0)->loss);
  EXPECT_EQ(without.evaluate(0)->loss, plain.evaluate(0)->loss);
  with.optimizer().exchange_averages();
  EXPECT_EQ(with.task().evaluate({})->loss, loss);
}

/// Held-out losses between steps, and the weights of the model at the end.
struct Averaged {
  std::vector<double> losses;
  Trace trace;
  friend bool operator==(const Averaged&, const Averaged&) = default;
};

Averaged averages_of(Trainer& trainer) {
  Averaged result;
  for (int i = 0; i < 3; ++i) {
    trainer.step();
    result.losses.push_back(trainer.evaluate(0)->loss);
  }
  result.trace = trace(trainer, 2);
  return result;
}

TEST(WeightAverage, NumberOfRanksAndStrategyChangeNoBitWithBitwise) {
  const TemporaryDirectory folder;
  const std::string base =
      averaged("reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 } ");
  Trainer alone = Trainer::create(layered_run(folder, base));
  const Averaged one = averages_of(alone);
  for (const char* strategy :
       {"DDP", "FULL_SHARD", "SHARD_GRAD_OP", "SHARD_OPTIMIZER", "HYBRID_SHARD shard_size: 2"}) {
    const config::RunConfig config =
        layered_run(folder, base + " parallel { strategy: " + strategy + " }");
    for (const int ranks : {2, 4}) {
      for (const Averaged& each : trained_on_ranks(config, ranks, averages_of)) {
        EXPECT_EQ(each, one) << strategy << ", " << ranks << " ranks";
      }
    }
  }
}

/// The averages in the newest checkpoint of a run, by the names of the weights.
std::vector<std::pair<std::string, std::vector<float>>> averages_in(
    const std::filesystem::path& run) {
  const SafetensorsFile file(list_checkpoints(run / "checkpoints").back().path /
                             "optimizer.safetensors");
  std::vector<std::pair<std::string, std::vector<float>>> averages;
  for (const TensorRecord& each : file.tensors()) {
    constexpr std::string_view kPrefix = "average.";
    if (!each.name.starts_with(kPrefix)) continue;
    const auto* const first = reinterpret_cast<const float*>(each.bytes.data());
    averages.emplace_back(each.name.substr(kPrefix.size()),
                          std::vector<float>(first, first + each.bytes.size() / sizeof(float)));
  }
  return averages;
}

TEST(WeightAverage, TheModelOfTheEndIsTheAverage) {
  for (const char* strategy : {"DDP", "FULL_SHARD"}) {
    const TemporaryDirectory folder;
    const config::RunConfig config = layered_run(
        folder, averaged(std::string("train { steps: 6 } checkpoint { files: WHOLE } parallel { "
                                     "strategy: ") +
                         strategy + " }"));
    rethrow_first(run_on_ranks(config, folder, 2));
    const SafetensorsFile model(folder / "run" / "model.safetensors");
    const auto averages = averages_in(folder / "run");
    EXPECT_EQ(averages.size(), model.tensors().size());
    for (const auto& [name, values] : averages) {
      if (name.find(".c_") != name.npos && name.ends_with(".weight")) continue;  // transposed there
      const TensorRecord& record = model.at(name);
      EXPECT_EQ(std::memcmp(record.bytes.data(), values.data(), record.bytes.size()), 0) << name;
    }
    // A run that is finished writes nothing when it is started again.
    const auto written = std::filesystem::last_write_time(folder / "run" / "model.safetensors");
    rethrow_first(run_on_ranks(config, folder, 2));
    EXPECT_EQ(std::filesystem::last_write_time(folder / "run" / "model.safetensors"), written);
  }
}

TEST(WeightAverage, AStoppedRunGoesOnWithTheSameBits) {
  for (const char* strategy : {"DDP", "FULL_SHARD"}) {
    expect_exact_resume(
        averaged(std::string("train { steps: 8 } parallel { strategy: ") + strategy + " }"), 2);
  }
}

TEST(WeightAverage, IsRefusedWhereRanksTakeStepsOfTheirOwn) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(says(message_of<config::SourceError>(
                       [&] { layered_run(folder, averaged("parallel { local_sgd {} }")); }),
                   "parallel.local_sgd does not go with train.weight_average"));
}

}  // namespace
}  // namespace lockstep::train
