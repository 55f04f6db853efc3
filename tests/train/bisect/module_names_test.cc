#include "train/bisect/module_names.h"

#include <gtest/gtest.h>

#include "core/base/current_scope.h"
#include "core/base/phase.h"
#include "core/ops/factory/factory.h"

namespace lockstep::train {
namespace {

class ModuleNamesTest : public testing::Test {
 protected:
  /// The module of a call of backward with these arguments.
  std::string backward_of(std::vector<Tensor> tensors) {
    const PhaseGuard phase(Phase::kBackward);
    return of(std::move(tensors));
  }
  std::string of(std::vector<Tensor> tensors) {
    std::vector<Value> arguments(tensors.begin(), tensors.end());
    const Stack stack(arguments);
    return names_.of(stack);
  }
  std::string forward_of(std::string_view module, std::vector<Tensor> tensors) {
    const ModuleScope scope(module);
    return of(std::move(tensors));
  }

  ModuleNames names_;
  Tensor a_ = zeros({1}), b_ = zeros({1}), c_ = zeros({1});
};

TEST_F(ModuleNamesTest, ForwardBelongsToTheRunningModule) {
  EXPECT_EQ(forward_of("h.0", {a_}), "h.0");
  EXPECT_EQ(of({a_}), "");
}

TEST_F(ModuleNamesTest, BackwardBelongsToTheModuleOfMostArguments) {
  forward_of("h.0", {a_});
  forward_of("h.1", {b_, c_});
  EXPECT_EQ(backward_of({a_, b_, c_}), "h.1");
  EXPECT_EQ(backward_of({a_}), "h.0");
  EXPECT_EQ(backward_of({c_}), "h.1");
  EXPECT_EQ(backward_of({b_, a_}), "h.1") << "of as many the later path";
  EXPECT_EQ(backward_of({zeros({1})}), "h.1") << "that of the call before";
}

TEST_F(ModuleNamesTest, AModuleThatRunsInBackwardIsItsOwn) {
  forward_of("h.0", {a_});
  const PhaseGuard phase(Phase::kBackward);
  EXPECT_EQ(forward_of("h.2", {a_}), "h.2");
  EXPECT_EQ(of({a_}), "h.2");
}

TEST_F(ModuleNamesTest, TheUpdateBelongsToNone) {
  forward_of("h.0", {a_});
  EXPECT_EQ(backward_of({a_}), "h.0");
  const PhaseGuard phase(Phase::kOptimizer);
  EXPECT_EQ(of({a_}), "");
}

TEST_F(ModuleNamesTest, WhatIsWrittenBelongsToItsWriter) {
  forward_of("h.0", {a_, b_});
  {
    const ModuleScope scope("h.1");
    names_.wrote({a_});
  }
  EXPECT_EQ(backward_of({a_}), "h.1");
  names_.wrote({b_});
  EXPECT_EQ(backward_of({b_}), "h.1") << "nothing is known of it; that of the call before";
}

TEST_F(ModuleNamesTest, NothingIsKnownOfTheMicroBatchBefore) {
  forward_of("h.0", {a_});
  EXPECT_EQ(backward_of({a_}), "h.0");
  names_.begin();
  EXPECT_EQ(backward_of({a_}), "");
}

}  // namespace
}  // namespace lockstep::train
