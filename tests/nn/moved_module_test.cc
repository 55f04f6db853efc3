// Modules can be moved, with their children, until something else refers to them.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "nn/layers.h"
#include "tests/kernels/tensor_values.h"
#include "tests/nn/names.h"

namespace lockstep::nn {
namespace {

struct Twins : Module {
  Twins() : first(2, 3), second(3, 1) {
    register_module("first", first);
    register_module("second", second);
  }
  Tensor forward(const Tensor& x) const { return second.forward(first.forward(x)); }
  Linear first;
  Linear second;
};

struct Tower : Module {
  Tower() {
    register_module("pair", pair);
    register_module("last", *last);
  }
  Twins pair;
  std::unique_ptr<Linear> last = std::make_unique<Linear>(1, 1);
};

std::vector<Module*> all_of(Module& module) {
  std::vector<Module*> found;
  module.for_each([&](Module& each) { found.push_back(&each); });
  return found;
}

TEST(MovedModule, FindsItsChildrenWhereTheyAreNow) {
  Tower made;
  const std::vector<Tensor> parameters = made.parameters();
  Tower tower(std::move(made));
  EXPECT_EQ(all_of(tower), (std::vector<Module*>{&tower, &tower.pair, &tower.pair.first,
                                                 &tower.pair.second, tower.last.get()}));
  EXPECT_EQ(names(tower.named_parameters()),
            (std::vector<std::string>{"pair.first.weight", "pair.first.bias", "pair.second.weight",
                                      "pair.second.bias", "last.weight", "last.bias"}));
  EXPECT_EQ(tower.pair.second.path(), "pair.second");
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(tower.parameters()[i].is_same(parameters[i]));
  }
  tower.eval();
  EXPECT_FALSE(tower.pair.first.is_training());
}

TEST(MovedModule, IsForgottenByWhatItWasMovedFrom) {
  std::optional<Tower> made(std::in_place);
  Tower tower(std::move(*made));
  made.reset();
  EXPECT_EQ(all_of(tower).size(), 5u);
  EXPECT_EQ(tower.pair.forward(ones({1, 2})).shape(), "[1, 1]");
}

TEST(MovedModule, StaysInTheListOfModulesThatGrows) {
  std::vector<Twins> pairs;
  for (int i = 0; i < 9; ++i) pairs.emplace_back();
  for (Twins& pair : pairs) {
    EXPECT_EQ(all_of(pair), (std::vector<Module*>{&pair, &pair.first, &pair.second}));
  }
}

TEST(MovedModule, KeepsItsHooks) {
  Linear layer(1, 1);
  const Module* called = nullptr;
  layer.register_forward_hook([&](const Module& module, auto, auto) { called = &module; });
  const Linear moved(std::move(layer));
  moved.forward(ones({1, 1}));
  EXPECT_EQ(called, &moved);
}

TEST(MovedModule, AChildThatDiesFirstLeavesItsParent) {
  struct Parent : Module {
    void add(Module& child) { register_module("child", child); }
  };
  Parent parent;
  {
    Linear child(1, 1);
    parent.add(child);
    EXPECT_EQ(parent.parameters().size(), 2u);
  }
  EXPECT_TRUE(parent.parameters().empty());
}

TEST(MovedModule, AParentThatDiesFirstLeavesItsChild) {
  struct Parent : Module {
    void add(Module& child) { register_module("child", child); }
  };
  Linear child(1, 1);
  {
    Parent parent;
    parent.add(child);
  }
  const Linear moved(std::move(child));
  EXPECT_EQ(moved.forward(ones({1, 1})).shape(), "[1, 1]");
}

}  // namespace
}  // namespace lockstep::nn
