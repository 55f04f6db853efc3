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
            "module   class       output    parameters\n"
            "(model)  Sequential  [5, 1]            41\n"
            "0        Linear      [5, 8]            32\n"
            "1        ReLU        [5, 8]             0\n"
            "2        Linear      [5, 1]             9\n"
            "41 parameters, 9 of them trained, 164 bytes\n");
}

TEST(Summary, NeedsNoForwardPassAndLeavesNoHooks) {
  Sequential net(Linear(3, 8));
  EXPECT_THAT(summary(net), HasSubstr("0        Linear      -"));
  const Tensor x = zeros({5, 3});
  summary(net, [&] { net.forward(x); });
  EXPECT_THAT(summary(net, [] {}), Not(HasSubstr("[5, 8]")));
}

TEST(Summary, NamesClassesOfTheProgram) {
  struct Tower : Module {};
  Tower tower;
  EXPECT_THAT(summary(tower), HasSubstr("Tower"));
}

}  // namespace
}  // namespace lockstep::nn
