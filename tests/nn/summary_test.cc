#include "nn/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/activations.h"
#include "nn/containers.h"
#include "nn/layers.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep::nn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Summary, ListsModulesWithShapesAndParameters) {
  Sequential net(Linear(3, 8), ReLU(), Linear(8, 1));
  net.at<Linear>(0).freeze();
  EXPECT_EQ(summary(net,
                    [&] {
                      net.forward(zeros({5, 3}));
                    }),
            "module   class       output    parameters            FLOP          kept\n"
            "(model)  Sequential  [5, 1]            41             320           160\n"
            "0        Linear      [5, 8]            32             240             0\n"
            "1        ReLU        [5, 8]             0               0             0\n"
            "2        Linear      [5, 1]             9              80           160\n"
            "41 parameters, 9 of them trained, 164 bytes\n");
}

TEST(Summary, NeedsNoForwardPassAndLeavesNoHooks) {
  Sequential net(Linear(3, 8));
  EXPECT_THAT(summary(net), HasSubstr("0        Linear      -"));
  const Tensor x = zeros({5, 3});
  summary(net, [&] { net.forward(x); });
  EXPECT_THAT(summary(net, [] {}), Not(HasSubstr("[5, 8]")));
}

TEST(Summary, WhatTwoModulesKeepCountsForTheFirst) {
  Sequential net(Linear(3, 8), ReLU(), Linear(8, 8));
  const std::string text = summary(net, [&] { net.forward(zeros({5, 3})); });
  // The input for the first product, the result of ReLU for itself and the second product.
  EXPECT_THAT(
      text, HasSubstr("0        Linear      [5, 8]            32             240            60\n"));
  EXPECT_THAT(
      text, HasSubstr("1        ReLU        [5, 8]             0               0           160\n"));
  EXPECT_THAT(
      text, HasSubstr("2        Linear      [5, 8]            72             640             0\n"));
}

TEST(Summary, CallsOfOneModuleAddUpAndAModuleWithoutACallHasNone) {
  Sequential net(Linear(4, 4), Linear(4, 4));
  const std::string text = summary(net, [&] {
    const NoGradGuard no_grad;
    net.at<Linear>(0).forward(net.at<Linear>(0).forward(zeros({2, 4})));
  });
  EXPECT_THAT(
      text, HasSubstr("(model)  Sequential  -                 40               -             -\n"));
  EXPECT_THAT(
      text, HasSubstr("0        Linear      [2, 4]            20             128             0\n"));
  EXPECT_THAT(
      text, HasSubstr("1        Linear      -                 20               -             -\n"));
}

TEST(Summary, NamesClassesOfTheProgram) {
  struct Tower : Module {};
  Tower tower;
  EXPECT_THAT(summary(tower), HasSubstr("Tower"));
}

}  // namespace
}  // namespace lockstep::nn
