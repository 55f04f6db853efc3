#include "core/dispatch/mode.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/dispatch/dispatch_logger.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

struct FunctionNames : FunctionMode {
  Names names;
  void call(const Operator& op, Stack& stack) override {
    names.push_back(op.name());
    op.call_boxed(stack);
  }
};
struct DispatchNames : DispatchMode {
  Names names;
  void call(const Operator& op, KeySet keys, Stack& stack) override {
    names.push_back(op.name());
    pass_on(op, keys, stack);
  }
};
/// Doubles the result of `relu`.
struct DoubledRelu : DispatchMode {
  void call(const Operator& op, KeySet keys, Stack& stack) override {
    pass_on(op, keys, stack);
    if (op.name() == "relu") stack.results()[0] = Value(stack.results()[0].tensor() * 2);
  }
};

TEST(FunctionMode, SeesCallsAsTheUserMadeThem) {
  const Tensor x = ones({2, 3});
  const Tensor weight = ones({4, 3}).set_requires_grad();
  FunctionNames mode;
  {
    const ModeGuard on(mode);
    linear(x, weight, {});
  }
  EXPECT_EQ(mode.names, Names{"linear"});
  linear(x, weight, {});
  EXPECT_EQ(mode.names.size(), 1u) << "the guard is gone";
}

TEST(DispatchMode, SeesWhatReachesBackends) {
  const Tensor x = ones({2, 3});
  const Tensor weight = ones({4, 3}).set_requires_grad();
  DispatchNames mode;
  {
    const ModeGuard on(mode);
    linear(x, weight, {});
  }
  EXPECT_EQ(mode.names, (Names{"t", "mm"}));
}

TEST(DispatchMode, SeesTheOperatorsOfBackward) {
  const Tensor weight = ones({3, 3}).set_requires_grad();
  const Tensor loss = mm(ones({3, 3}), weight).sum();
  DispatchNames mode;
  {
    const ModeGuard on(mode);
    loss.backward();
  }
  EXPECT_EQ(std::count(mode.names.begin(), mode.names.end(), "mm"), 1);
  EXPECT_TRUE(weight.grad().defined());
}

TEST(DispatchMode, MayReplaceAResultAndAutogradGoesOn) {
  const Tensor x = full({2}, 3.0).set_requires_grad();
  DoubledRelu mode;
  const ModeGuard on(mode);
  const Tensor y = relu(x);
  EXPECT_EQ(y.data<float>()[0], 6);
  EXPECT_TRUE(y.requires_grad());
}

TEST(ModeGuard, TheInnermostSeesACallFirstAndItsOwnCallsReachTheOuterOnes) {
  DispatchNames outer;
  DoubledRelu inner;
  const Tensor x = ones({2});
  {
    const ModeGuard first(outer);
    const ModeGuard second(inner);
    relu(x);
  }
  EXPECT_EQ(outer.names, (Names{"relu", "mul.Scalar"}));
}

TEST(ModeGuard, FactoriesAndInPlaceFormsAreSeenToo) {
  DispatchNames mode;
  const ModeGuard on(mode);
  const Tensor x = zeros({2});
  x.add_(ones({2}));
  EXPECT_EQ(mode.names, (Names{"zeros", "ones", "add_.Tensor"}));
  EXPECT_EQ(x.data<float>()[1], 1);
}

TEST(ModeGuard, AThrowLeavesTheStackAsItWas) {
  FunctionNames mode;
  {
    const ModeGuard on(mode);
    EXPECT_THROW(mm(ones({2, 3}), ones({2, 3})), ShapeError);
    mode.names.clear();
    relu(ones({1}));
    EXPECT_EQ(mode.names, (Names{"ones", "relu"}));
  }
  EXPECT_FALSE(detail::thread_keys.included.has(Key::kFunctionMode));
}

TEST(DispatchLogger, ShowsShapesOfWhatGoesInAndComesOut) {
  std::vector<std::string> lines;
  DispatchLogger logger([&](std::string_view line) { lines.emplace_back(line); });
  const Tensor a = ones({2, 3});
  const Tensor b = ones({3, 4});
  {
    const ModeGuard on(logger);
    mm(a, b);
  }
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].substr(0, 3), "mm(");
  EXPECT_NE(lines[0].find("float32[2, 3]"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("-> float32[2, 4]"), std::string::npos) << lines[0];
}

TEST(FunctionLogger, KeepsCompositesWhole) {
  std::vector<std::string> lines;
  FunctionLogger logger([&](std::string_view line) { lines.emplace_back(line); });
  const Tensor x = ones({2, 3});
  {
    const ModeGuard on(logger);
    x.flatten();
  }
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("flatten")) << lines[0];
}

}  // namespace
}  // namespace lockstep
