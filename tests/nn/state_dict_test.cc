#include "nn/state_dict.h"

#include <gtest/gtest.h>

#include "autograd/hooks.h"
#include "nn/containers.h"
#include "nn/image_layers.h"
#include "nn/init.h"
#include "nn/layers.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep::nn {
namespace {

using Names = std::vector<std::string>;

Names names_of(const StateDict& state) {
  Names found;
  for (const auto& [name, tensor] : state) found.push_back(name);
  return found;
}

Sequential small_net() { return Sequential(Conv2d(1, 2, 1), BatchNorm2d(2)); }

TEST(StateDict, ListsParametersAndBuffersOfEachModuleInPytorchsOrder) {
  const Sequential net = small_net();
  const StateDict state = net.state_dict();
  EXPECT_EQ(names_of(state), (Names{"0.weight", "1.weight", "1.bias", "1.running_mean",
                                    "1.running_var", "1.num_batches_tracked"}));
  EXPECT_FALSE(state.at("0.weight").requires_grad());
  EXPECT_EQ(state.at("0.weight").data(), net.at<Conv2d>(0).weight.data());
}

TEST(StateDict, ListsASharedTensorUnderEachName) {
  struct Tied : Module {
    Tied() : a(register_parameter("a", ones({2}))), b(register_parameter("b", a)) {}
    Tensor a, b;
  };
  EXPECT_EQ(names_of(Tied().state_dict()), (Names{"a", "b"}));
}

TEST(StateDict, RefusesNamesTwiceAndNamesThatAreMissing) {
  StateDict state;
  state.add("w", ones({1}));
  expect_error<Error>([&] { state.add("w", ones({1})); }, "[state_dict]", "\"w\"");
  expect_error<Error>([&] { state.at("v"); }, "[state_dict]", "\"v\"", "w");
}

TEST(Module, LoadsAStateIntoTheSameTensors) {
  Sequential from = small_net();
  Sequential into = small_net();
  from.forward(random_tensor({2, 1, 3, 3}));
  const Tensor weight = into.at<Conv2d>(0).weight;
  EXPECT_TRUE(into.load_state_dict(from.state_dict()).empty());
  EXPECT_TRUE(into.at<Conv2d>(0).weight.is_same(weight));
  EXPECT_TRUE(weight.requires_grad());
  for (const auto& [name, tensor] : from.state_dict()) {
    expect_near(into.state_dict().at(name), tensor, 0, 0);
  }
  EXPECT_EQ(into.at<BatchNorm2d>(1).num_batches_tracked.item<int64_t>(), 1);
}

TEST(Module, ListsWhatDoesNotFitAndThenLoadsNothing) {
  Sequential net(Linear(2, 2), Linear(2, 1));
  const Numbers before = values(net.at<Linear>(0).weight);
  StateDict state;
  state.add("0.weight", ones({2, 2}));
  state.add("0.bias", ones({3}));
  state.add("1.weight", ones({1, 2}));
  state.add("2.weight", ones({1}));
  expect_error<CheckpointError>([&] { net.load_state_dict(state); }, "missing: 1.bias",
                                "unexpected: 2.weight",
                                "another shape: 0.bias (expected [2], got [3])");
  EXPECT_EQ(values(net.at<Linear>(0).weight), before);

  const StateMismatch mismatch = net.load_state_dict(state, false);
  EXPECT_EQ(mismatch.missing, Names{"1.bias"});
  EXPECT_EQ(mismatch.unexpected, Names{"2.weight"});
  EXPECT_EQ(mismatch.misshapen, Names{"0.bias (expected [2], got [3])"});
  EXPECT_EQ(values(net.at<Linear>(0).weight), Numbers(4, 1.0));
}

TEST(Module, CastsWhatItLoads) {
  Linear layer(2, 1);
  StateDict state;
  state.add("weight", tensor_of({1, 2}, DType::kF64).view({1, 2}));
  state.add("bias", tensor_of({3}, DType::kBF16));
  layer.load_state_dict(state);
  EXPECT_EQ(layer.weight.dtype(), DType::kF32);
  expect_values(layer.weight.view({2}), {1, 2});
  expect_values(layer.bias, {3});
}

TEST(Module, ToGivesTheSameTensorsAnotherDtype) {
  Sequential net = small_net();
  const Conv2d& conv = net.at<Conv2d>(0);
  const BatchNorm2d& norm = net.at<BatchNorm2d>(1);
  net.forward(random_tensor({2, 1, 3, 3})).sum().backward();
  const Tensor weight = conv.weight;
  const Numbers gradient = values(weight.grad());
  net.to(DType::kF64);
  EXPECT_EQ(weight.dtype(), DType::kF64);
  EXPECT_TRUE(net.parameters()[0].is_same(weight));
  EXPECT_TRUE(weight.requires_grad() && weight.is_leaf());
  EXPECT_EQ(norm.running_mean.dtype(), DType::kF64);
  EXPECT_EQ(norm.num_batches_tracked.dtype(), DType::kI64);
  EXPECT_EQ(weight.grad().dtype(), DType::kF64);
  EXPECT_EQ(values(weight.grad()), gradient);
  // Gradients of the new dtype are added to those that moved along.
  net.forward(random_tensor({2, 1, 3, 3}, DType::kF64)).sum().backward();
  EXPECT_EQ(weight.grad().dtype(), DType::kF64);
  expect_error<DTypeError>([&] { net.to(DType::kI32); }, "[module]", "int32");
}

TEST(Module, ToMovesToAnotherDevice) {
  Linear layer(2, 3);
  layer.to(Device(DeviceType::kMeta));
  EXPECT_EQ(layer.device().type, DeviceType::kMeta);
  EXPECT_EQ(layer.forward(empty({5, 2}, Device(DeviceType::kMeta))).shape(), "[5, 3]");
}

TEST(Module, ToRefusesParametersWithHooksBeforeAnyMoves) {
  Sequential net(Linear(2, 2), Linear(2, 2));
  net.at<Linear>(1).weight.register_hook([](const Tensor& grad) { return grad; });
  expect_error<AutogradError>([&] { net.to(DType::kF64); }, "[set_data]", "hooks");
  EXPECT_EQ(net.at<Linear>(0).weight.dtype(), DType::kF32);
}

TEST(Module, FrozenParametersGetNoGradients) {
  Sequential net(Linear(2, 2), Linear(2, 1));
  net.at<Linear>(0).freeze();
  net.forward(ones({1, 2})).sum().backward();
  EXPECT_FALSE(net.at<Linear>(0).weight.grad().defined());
  EXPECT_TRUE(net.at<Linear>(1).weight.grad().defined());
  EXPECT_EQ(net.parameters().size(), 4u);
  net.unfreeze();
  net.forward(ones({1, 2})).sum().backward();
  EXPECT_TRUE(net.at<Linear>(0).weight.grad().defined());
}

TEST(Module, ApplyVisitsChildrenBeforeTheirParent) {
  Sequential net(Linear(2, 2), Linear(2, 1));
  std::vector<std::string> visited;
  net.apply([&](Module& module) {
    visited.push_back(module.path());
    if (auto* const linear = dynamic_cast<Linear*>(&module)) init::ones_(linear->weight);
  });
  EXPECT_EQ(visited, (Names{"0", "1", ""}));
  EXPECT_EQ(values(net.at<Linear>(1).weight), Numbers(2, 1.0));
}

TEST(Module, RefusesANameTwice) {
  struct Twice : Module {
    explicit Twice(bool buffer) {
      register_parameter("w", ones({1}));
      if (buffer) {
        register_buffer("w", ones({1}));
      } else {
        register_parameter("w", ones({1}));
      }
    }
  };
  expect_error<Error>([] { Twice(false); }, "[module]", "\"w\"", "taken");
  expect_error<Error>([] { Twice(true); }, "[module]", "\"w\"", "taken");
}

}  // namespace
}  // namespace lockstep::nn
