#include "nn/containers.h"

#include <gtest/gtest.h>

#include "core/ops/pointwise/pointwise.h"
#include "nn/activations.h"
#include "nn/image_layers.h"
#include "nn/layers.h"
#include "nn/shape_layers.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"
#include "tests/nn/names.h"

namespace lockstep::nn {
namespace {

using Names = std::vector<std::string>;

TEST(Sequential, OwnsItsLayersAndCallsThemInOrder) {
  manual_seed(1);
  const Sequential net(Linear(3, 8), ReLU(), Linear(8, 1));
  EXPECT_EQ(net.size(), 3u);
  EXPECT_EQ(names(net.named_parameters()), (Names{"0.weight", "0.bias", "2.weight", "2.bias"}));
  const Tensor x = random_tensor({4, 3});
  const Tensor by_hand = net.at<Linear>(2).forward(relu(net.at<Linear>(0).forward(x)));
  expect_near(net.forward(x), by_hand, 0, 0);
  EXPECT_EQ(net[1].path(), "1");
  net.forward(x).sum().backward();
  EXPECT_TRUE(net.at<Linear>(0).weight.grad().defined());
}

TEST(Sequential, TakesFunctionsOtherSequentialsAndNames) {
  Sequential net;
  net.push_back("body", Sequential(Linear(3, 4), Tanh()));
  net.push_back(Functional([](const Tensor& x) { return x * 2.0; }));
  net.push_back("head", std::make_unique<Linear>(4, 2));
  EXPECT_EQ(names(net.named_parameters()),
            (Names{"body.0.weight", "body.0.bias", "head.weight", "head.bias"}));
  const Tensor x = random_tensor({2, 3});
  auto& body = net.at<Sequential>(0);
  expect_near(net.forward(x), net.at<Linear>(2).forward(body.forward(x) * 2.0), 0, 0);
  EXPECT_EQ(body[0].path(), "body.0");
}

TEST(Sequential, MovesWithItsLayers) {
  const auto made = [] {
    Sequential net(Linear(2, 2), ReLU());
    Sequential moved(std::move(net));
    moved.push_back(Linear(2, 1));
    return moved;
  };
  Sequential net(made());
  net.eval();
  EXPECT_FALSE(net[2].is_training());
  EXPECT_EQ(net.parameter_count(), 9);
  EXPECT_EQ(net.forward(ones({5, 2})).shape(), "[5, 1]");
}

TEST(Sequential, RefusesNamesIndicesAndClassesThatAreNotThere) {
  Sequential net(Linear(2, 2));
  expect_error<Error>([&] { net.push_back("0", ReLU()); }, "[module]", "\"0\"", "taken");
  expect_error<Error>([&] { net.push_back("", ReLU()); }, "[module]", "no name");
  EXPECT_EQ(net.size(), 1u);
  EXPECT_EQ(net.forward(ones({1, 2})).shape(), "[1, 2]");
  expect_error<IndexError>([&] { net[1]; }, "[sequential]", "1");
  expect_error<Error>([&] { net.at<ReLU>(0); }, "[module]", "\"0\"", "Linear");
}

TEST(ModuleList, HoldsModulesOfAnyClass) {
  struct Blocks : Module {
    Blocks() : list(Bilinear(2, 2, 3)) {
      list.push_back(Linear(3, 3));
      register_module("blocks", list);
    }
    ModuleList list;
  };
  const Blocks model;
  EXPECT_EQ(names(model.named_parameters()),
            (Names{"blocks.0.weight", "blocks.0.bias", "blocks.1.weight", "blocks.1.bias"}));
  const Tensor x = ones({1, 2});
  const Tensor y = model.list.at<Bilinear>(0).forward(x, x);
  EXPECT_EQ(model.list.at<Linear>(1).forward(y).shape(), "[1, 3]");
  expect_error<IndexError>([&] { model.list[2]; }, "[module_list]", "2");
}

TEST(ModuleDict, FindsModulesByName) {
  ModuleDict dict;
  Linear& first = dict.insert("first", Linear(2, 3));
  dict.insert("second", Conv2d(1, 1, 1));
  EXPECT_EQ(&dict.at<Linear>("first"), &first);
  EXPECT_EQ(dict.keys(), (Names{"first", "second"}));
  EXPECT_TRUE(dict.contains("second"));
  EXPECT_FALSE(dict.contains("third"));
  EXPECT_EQ(names(dict.named_parameters()), (Names{"first.weight", "first.bias", "second.weight"}));
  expect_error<Error>([&] { dict["third"]; }, "[module_dict]", "third", "first, second");
  expect_error<Error>([&] { dict.insert("first", ReLU()); }, "[module]", "first");
  EXPECT_EQ(dict.size(), 2u);
}

TEST(ShapeLayers, Rearrange) {
  const Tensor x = counting({2, 8, 3});
  EXPECT_TRUE(Identity().forward(x).is_same(x));
  EXPECT_EQ(Flatten().forward(x).shape(), "[2, 24]");
  EXPECT_EQ(Flatten(0, 1).forward(x).shape(), "[16, 3]");
  EXPECT_EQ(Unflatten(1, {2, -1}).forward(x).shape(), "[2, 2, 4, 3]");
  const Tensor image = counting({1, 8, 2, 3});
  const Tensor large = PixelShuffle(2).forward(image);
  EXPECT_EQ(large.shape(), "[1, 2, 4, 6]");
  expect_near(PixelUnshuffle(2).forward(large), image, 0, 0);
}

}  // namespace
}  // namespace lockstep::nn
