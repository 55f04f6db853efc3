// Every optimizer takes the steps that PyTorch takes.

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "tests/optim/every_optimizer.h"
#include "tests/optim/reference.h"

namespace lockstep::optim {
namespace {

/// The options of `optimizer_cases` in record_reference.py.
const std::map<std::string, MakeOptimizer>& recorded_cases() {
  static const std::map<std::string, MakeOptimizer> kCases = {
      {"sgd", maker<SGD>({.learning_rate = 0.1})},
      {"sgd_momentum", maker<SGD>({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01})},
      {"sgd_nesterov", maker<SGD>({.learning_rate = 0.05, .momentum = 0.8, .nesterov = true})},
      {"sgd_dampening",
       maker<SGD>({.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.02})},
      {"sgd_maximize",
       maker<SGD>({.learning_rate = 0.01, .momentum = 0.5, .weight_decay = 0.1, .maximize = true})},
      {"adam", maker<Adam>({.learning_rate = 0.02})},
      {"adam_decay", maker<Adam>({.learning_rate = 0.02,
                                  .beta1 = 0.8,
                                  .beta2 = 0.95,
                                  .epsilon = 1e-6,
                                  .weight_decay = 0.1})},
      {"adam_amsgrad",
       maker<Adam>({.learning_rate = 0.02, .beta2 = 0.9, .weight_decay = 0.1, .amsgrad = true})},
      {"adam_maximize",
       maker<Adam>({.learning_rate = 0.02, .weight_decay = 0.1, .maximize = true})},
      {"adamw", maker<AdamW>({.learning_rate = 0.02})},
      {"adamw_decay",
       maker<AdamW>({.learning_rate = 0.02, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.3})},
      {"adamw_amsgrad",
       maker<AdamW>({.learning_rate = 0.02, .beta2 = 0.9, .amsgrad = true, .maximize = true})},
      {"rmsprop", maker<RMSprop>({.learning_rate = 0.01})},
      {"rmsprop_momentum",
       maker<RMSprop>({.learning_rate = 0.01, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.7})},
      {"rmsprop_centered", maker<RMSprop>({.learning_rate = 0.01,
                                           .alpha = 0.9,
                                           .momentum = 0.5,
                                           .centered = true,
                                           .maximize = true})},
      {"adagrad", maker<Adagrad>({.learning_rate = 0.1})},
      {"adagrad_decay", maker<Adagrad>({.learning_rate = 0.1,
                                        .lr_decay = 0.05,
                                        .weight_decay = 0.1,
                                        .initial_accumulator_value = 0.2,
                                        .maximize = true})},
      {"adadelta", maker<Adadelta>({})},
      {"adadelta_decay", maker<Adadelta>({.learning_rate = 0.5,
                                          .rho = 0.8,
                                          .epsilon = 1e-4,
                                          .weight_decay = 0.1,
                                          .maximize = true})},
      {"nadam", maker<NAdam>({.learning_rate = 0.02})},
      {"nadam_decay",
       maker<NAdam>({.learning_rate = 0.02, .weight_decay = 0.1, .momentum_decay = 0.02})},
      {"nadam_decoupled", maker<NAdam>({.learning_rate = 0.02,
                                        .beta1 = 0.8,
                                        .beta2 = 0.95,
                                        .weight_decay = 0.1,
                                        .decoupled_weight_decay = true,
                                        .maximize = true})},
      {"radam", maker<RAdam>({.learning_rate = 0.02})},
      {"radam_decay",
       maker<RAdam>({.learning_rate = 0.02, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1})},
      {"radam_decoupled", maker<RAdam>({.learning_rate = 0.02,
                                        .weight_decay = 0.1,
                                        .decoupled_weight_decay = true,
                                        .maximize = true})},
      {"adafactor", maker<Adafactor>({.learning_rate = 0.1})},
      {"adafactor_decay", maker<Adafactor>({.learning_rate = 0.3,
                                            .beta2_decay = -0.5,
                                            .epsilon2 = 0.2,
                                            .clip = 1.2,
                                            .weight_decay = 0.1,
                                            .maximize = true})},
  };
  return kCases;
}

void expect_recorded_steps(DType dtype, const char* key, double tolerance) {
  const nlohmann::json& recorded = reference()["optimizers"];
  ASSERT_EQ(recorded.size(), recorded_cases().size());
  for (const auto& [name, make] : recorded_cases()) {
    const auto wanted = recorded.at(name).at(key).get<std::map<std::string, std::vector<double>>>();
    const std::vector<Tensor> parameters = start(dtype);
    const std::unique_ptr<Optimizer> optimizer = make(parameters);
    size_t compared = 0;
    for (int step = 1; step <= 50; ++step) {
      set_gradients(parameters, step);
      optimizer->step();
      const auto want = wanted.find(std::to_string(step));
      if (want == wanted.end()) continue;
      expect_near(elements(parameters), want->second, tolerance,
                  name + ", step " + std::to_string(step));
      ++compared;
    }
    EXPECT_EQ(compared, wanted.size());
  }
}

TEST(OptimizerEquality, FiftyStepsInF64ArePyTorchs) {
  // PyTorch records 14 digits here.
  expect_recorded_steps(DType::kF64, "f64", 1e-12);
}

TEST(OptimizerEquality, FiftyStepsInF32DifferByRounding) {
  expect_recorded_steps(DType::kF32, "f32", 5e-6);
}

}  // namespace
}  // namespace lockstep::optim
