#include "optim/state_dict.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "autograd/grad_mode.h"
#include "core/ops/factory/copy.h"
#include "tests/core/expect_error.h"
#include "tests/optim/every_optimizer.h"
#include "tests/optim/reference.h"
#include "train/weights/state_file.h"

namespace lockstep::optim {
namespace {

std::vector<nn::NamedParameter> named(const std::vector<Tensor>& parameters) {
  return {{"fc.weight", parameters[0]}, {"fc.bias", parameters[1]}};
}

void take_steps(Optimizer& optimizer, const std::vector<Tensor>& parameters, int first, int last) {
  for (int step = first; step <= last; ++step) {
    set_gradients(parameters, step);
    optimizer.step();
  }
}

std::vector<Tensor> copies_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> copies;
  for (const Tensor& parameter : parameters) {
    copies.push_back(clone(parameter.detach()).set_requires_grad());
  }
  return copies;
}

/// Tensors of their own, as they would come from a file.
StateDict copy_of(const StateDict& state) {
  StateDict copy = state;
  for (auto& [name, tensor] : copy.tensors) tensor = clone(tensor);
  return copy;
}

TEST(OptimizerState, AResumedOptimizerGoesOnWithTheSameBits) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    for (const MakeOptimizer& make : every_optimizer()) {
      const std::vector<Tensor> want = start(dtype);
      const std::unique_ptr<Optimizer> straight = make(named(want));
      straight->set_learning_rate(0.03);
      take_steps(*straight, want, 1, 7);

      const std::vector<Tensor> got = copies_of(want);
      const std::unique_ptr<Optimizer> resumed = make(named(got));
      resumed->load_state_dict(copy_of(straight->state_dict()));
      EXPECT_EQ(resumed->learning_rate(), 0.03);
      take_steps(*straight, want, 8, 20);
      take_steps(*resumed, got, 8, 20);
      EXPECT_EQ(elements(got), elements(want)) << straight->kind();
    }
  }
}

TEST(OptimizerState, NamesAreThoseOfTheParameters) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  Adam optimizer(named(parameters), {.learning_rate = 0.5});
  take_steps(optimizer, parameters, 1, 4);
  const StateDict state = optimizer.state_dict();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state.tensors) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"exp_avg.fc.bias", "exp_avg.fc.weight",
                                             "exp_avg_sq.fc.bias", "exp_avg_sq.fc.weight"}));
  EXPECT_EQ(state.numbers.at("step.fc.weight"), 4);
  EXPECT_EQ(state.numbers.at("step.fc.bias"), 3);
  EXPECT_EQ(state.numbers.at("group.0.learning_rate"), 0.5);
  EXPECT_EQ(state.numbers.at("group.0.amsgrad"), 0);
}

TEST(OptimizerState, EveryOptionOfEveryGroupIsRestored) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  SGD saved({parameters[0]}, {.momentum = 0.5, .dampening = 0.25, .maximize = true});
  saved.add_group({parameters[1]}, {.learning_rate = 2, .momentum = 0.75, .nesterov = true});
  saved.set_initial_learning_rate(3, 1);
  SGD loaded({parameters[0]});
  loaded.add_group({parameters[1]});
  loaded.load_state_dict(saved.state_dict());
  EXPECT_EQ(loaded.options(0).momentum, 0.5);
  EXPECT_EQ(loaded.options(0).dampening, 0.25);
  EXPECT_TRUE(loaded.options(0).maximize);
  EXPECT_EQ(loaded.options(1).learning_rate, 2);
  EXPECT_TRUE(loaded.options(1).nesterov);
  EXPECT_EQ(loaded.initial_learning_rate(0), std::nullopt);
  EXPECT_EQ(loaded.initial_learning_rate(1), 3);
}

TEST(OptimizerState, LoadingCopiesTheTensors) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  SGD saved(parameters, {.momentum = 0.9});
  take_steps(saved, parameters, 1, 1);
  const std::vector<Tensor> others = copies_of(parameters);
  SGD loaded(others);
  loaded.load_state_dict(saved.state_dict());
  const Tensor buffer = loaded.state_dict().tensors.at("momentum_buffer.0");
  EXPECT_FALSE(buffer.is_same(saved.state_dict().tensors.at("momentum_buffer.0")));
  const std::vector<double> before = elements({buffer});
  take_steps(saved, parameters, 2, 2);
  EXPECT_EQ(elements({buffer}), before);
}

TEST(OptimizerState, StateOfFewerStepsForgetsWhatCameAfter) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  Adam optimizer(parameters);
  const StateDict fresh = optimizer.state_dict();
  take_steps(optimizer, parameters, 1, 3);
  optimizer.load_state_dict(fresh);
  EXPECT_EQ(optimizer.state_dict().tensors.size(), 0u);
  EXPECT_EQ(optimizer.state_dict().numbers, fresh.numbers);
}

TEST(OptimizerState, StateThatDoesNotFitChangesNothing) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  Adam optimizer(named(parameters));
  take_steps(optimizer, parameters, 1, 2);
  const StateDict good = copy_of(optimizer.state_dict());
  const auto expect_refused = [&](const StateDict& state, const std::string& part) {
    expect_error<CheckpointError>([&] { optimizer.load_state_dict(state); }, "[optim.Adam]", part);
    EXPECT_EQ(optimizer.state_dict().numbers, good.numbers);
    for (const auto& [name, tensor] : optimizer.state_dict().tensors) {
      EXPECT_EQ(elements({tensor}), elements({good.tensors.at(name)})) << name;
    }
  };
  StateDict state = good;
  state.numbers["group.0.learning_rate"] = 7;
  state.tensors["exp_avg.fc.bias"] = parameters[0].detach();
  expect_refused(state,
                 "\"exp_avg.fc.bias\" in the state has another shape than parameter fc.bias");

  state = good;
  state.tensors["exp_avg.other"] = parameters[0].detach();
  expect_refused(state, "\"exp_avg.other\" belongs to no parameter");

  state = good;
  state.numbers.erase("group.0.beta1");
  expect_refused(state, "\"group.0.beta1\"");

  state = good;
  state.numbers["groups"] = 2;
  expect_refused(state, "expected groups = 1, got 2");

  state = good;
  state.numbers["group.0.parameters"] = 3;
  expect_refused(state, "group.0.parameters = 2, got 3");

  expect_refused(SGD(named(copies_of(parameters))).state_dict(), "group.0.beta1");
}

TEST(StateDict, AFileHoldsAllOfIt) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  NAdam optimizer(named(parameters));
  take_steps(optimizer, parameters, 1, 3);
  const StateDict state = optimizer.state_dict();
  const auto path = std::filesystem::path(testing::TempDir()) /
                    ("optimizer_state_" + std::to_string(getpid()) + ".safetensors");
  train::save(path, state.as_tensors());
  const StateDict again = StateDict::from_tensors(train::load(path));
  std::filesystem::remove(path);
  EXPECT_EQ(again.numbers, state.numbers);
  ASSERT_EQ(again.tensors.size(), state.tensors.size());
  for (const auto& [name, tensor] : state.tensors) {
    EXPECT_EQ(elements({again.tensors.at(name)}), elements({tensor})) << name;
  }
}

TEST(StateDict, PartsAreCutOutByTheirPrefix) {
  StateDict whole;
  whole.add("a.", {.tensors = {}, .numbers = {{"x", 1}, {"y", 2}}});
  whole.add("b.", {.tensors = {}, .numbers = {{"x", 3}}});
  EXPECT_EQ(whole.part("a.").numbers, (std::map<std::string, double>{{"x", 1}, {"y", 2}}));
  EXPECT_EQ(whole.part("b.").numbers, (std::map<std::string, double>{{"x", 3}}));
}

}  // namespace
}  // namespace lockstep::optim
