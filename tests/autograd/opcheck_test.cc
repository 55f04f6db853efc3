#include "autograd/opcheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/factory/factory.h"
#include "core/plugin/plugin.h"
#include "tests/conformance/elements.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Tensor matrix(DType dtype = DType::kF32) {
  const Tensor made = empty({2, 3}, dtype);
  set_elements(made, std::vector<double>{1, -2, 3, 0.5, 4, -6});
  return made;
}

std::vector<std::string> check(const char* op, std::vector<Value> arguments) {
  const OpSample sample{std::move(arguments), {}};
  return opcheck(op, {&sample, 1});
}

class DishonestPlugin : public ::testing::Test {
 protected:
  Plugin plugin_ = load_library(std::filesystem::path(LOCKSTEP_TEST_PLUGINS) / "libdishonest.so");
  Tensor x_ = matrix();
};

TEST(Opcheck, FindsNothingAmissWithBuiltIns) {
  const Tensor x = matrix();
  EXPECT_THAT(check("mul.Tensor", {x, x}), IsEmpty());
  EXPECT_THAT(check("mul_.Tensor", {x, x}), IsEmpty());
  EXPECT_THAT(check("mm", {x, matrix().t()}), IsEmpty());
  EXPECT_THAT(check("transpose.int", {x, 0, 1}), IsEmpty());
  EXPECT_THAT(check("mse_loss", {x, matrix().neg()}), IsEmpty());
  EXPECT_THAT(check("eq.Tensor", {x, x}), IsEmpty());
}

TEST(Opcheck, LeavesTheSampleAlone) {
  const Tensor x = matrix();
  EXPECT_THAT(check("mul_.Tensor", {x, x}), IsEmpty());
  EXPECT_EQ(elements_as<double>(x), elements_as<double>(matrix()));
  EXPECT_FALSE(x.requires_grad());
}

TEST_F(DishonestPlugin, AnHonestOperatorPasses) {
  EXPECT_THAT(check("dishonest::honest", {x_}), IsEmpty());
}

TEST_F(DishonestPlugin, AChangedArgumentIsFound) {
  EXPECT_THAT(check("dishonest::changes", {x_}),
              ::testing::Contains(HasSubstr(
                  "[dishonest::changes] sample 0: mutation: self changes, which the schema does "
                  "not mark")));
}

TEST_F(DishonestPlugin, AnAliasIsFound) {
  EXPECT_THAT(check("dishonest::aliases", {x_}),
              ElementsAre(HasSubstr("aliasing: result 0 shares memory with self")));
}

TEST_F(DishonestPlugin, ARuleThatContradictsTheResultIsFound) {
  EXPECT_THAT(check("dishonest::rule", {x_}),
              ElementsAre(HasSubstr("rule: result 0 differs: on meta float32[3]")));
}

TEST_F(DishonestPlugin, ARuleWithOtherStridesIsFound) {
  const Tensor square = empty({2, 2});
  set_elements(square, std::vector<double>{1, 2, 3, 4});
  EXPECT_THAT(check("dishonest::rule_strides", {square}),
              Contains(HasSubstr("rule: result 0 differs: on meta float32[2, 2] with strides "
                                 "[2, 1], with elements float32[2, 2] with strides [1, 2]")));
}

TEST_F(DishonestPlugin, AWrongDerivativeIsFound) {
  EXPECT_THAT(check("dishonest::gradient", {x_}), ElementsAre(HasSubstr("derivative: threw")));
}

TEST_F(DishonestPlugin, AMissingDerivativeNeedsAReason) {
  EXPECT_THAT(check("dishonest::no_derivative", {x_}),
              ElementsAre(HasSubstr("derivative: there is none, and no reason is given")));
}

TEST_F(DishonestPlugin, AKernelThatIgnoresStridesIsFound) {
  EXPECT_THAT(check("dishonest::strides", {x_}),
              ElementsAre(HasSubstr("strides: arguments that lie column by column: result 0")));
}

TEST_F(DishonestPlugin, AWrongBatchingRuleIsFound) {
  EXPECT_THAT(check("dishonest::batching", {x_}),
              ElementsAre(HasSubstr("batching: arguments 0b1 batched, element 0: result 0"),
                          HasSubstr("batching: arguments 0b1 batched, element 1: result 0")));
}

TEST_F(DishonestPlugin, ADTypeThatAutocastWillGiveMustBeTaken) {
  EXPECT_THAT(check("dishonest::autocast", {x_}), ElementsAre(HasSubstr("autocast: threw")));
}

TEST(Opcheck, ThePluginOfTheTestsIsHonest) {
  const Plugin plugin =
      load_library(std::filesystem::path(LOCKSTEP_TEST_PLUGINS) / "libelementwise.so");
  const Tensor x = matrix();
  EXPECT_THAT(check("test::scale_clamp", {x, 1.25}), IsEmpty());
  EXPECT_THAT(check("test::scale_clamp_", {x, 1.25}), IsEmpty());
  EXPECT_THAT(check("test::double_it", {x}), IsEmpty());
}

}  // namespace
}  // namespace lockstep
