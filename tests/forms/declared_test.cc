#include "tests/forms/declared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace lockstep::forms {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DeclaredFunctions, KindsAreTypesWithoutConstReferencesAndOptional) {
  EXPECT_EQ(kind_of_type("const Tensor&"), "Tensor");
  EXPECT_EQ(kind_of_type("OptionalTensor"), "Tensor");
  EXPECT_EQ(kind_of_type("std::optional<IntList>"), "IntList");
  EXPECT_EQ(kind_of_type("OptionalIntList"), "IntList");
  EXPECT_EQ(kind_of_type("std::string_view"), "std::string_view");
}

TEST(DeclaredFunctions, ListsAreSplitOutsideOfBrackets) {
  EXPECT_THAT(split_list("int a = f(1, 2), std::tuple<int, int> b, IntList c = {0, 1}"),
              ElementsAre("int a = f(1, 2)", "std::tuple<int, int> b", "IntList c = {0, 1}"));
  EXPECT_THAT(split_list("  "), IsEmpty());
}

TEST(DeclaredFunctions, AreFoundWithTheirParametersAndDefaults) {
  const Overloads found = declared_functions(R"(
/// Tensor commented(const Tensor& self);
Tensor sum(const Tensor& self);
Tensor sum(const Tensor& self, IntList dims, bool keepdim = false,
           std::optional<DType> dtype = std::nullopt);
std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim = false);
inline bool same(IntList a, IntList b) { return equal(a, b); }
)");
  ASSERT_THAT(found.at("sum"), ::testing::SizeIs(2));
  EXPECT_THAT(found.at("sum")[0].kinds, ElementsAre("Tensor"));
  EXPECT_EQ(found.at("sum")[0].required, 1u);
  EXPECT_THAT(found.at("sum")[1].kinds, ElementsAre("Tensor", "IntList", "bool", "DType"));
  EXPECT_EQ(found.at("sum")[1].required, 2u);
  EXPECT_THAT(found.at("max")[0].kinds, ElementsAre("Tensor", "int64_t", "bool"));
  EXPECT_TRUE(found.contains("same"));
  EXPECT_FALSE(found.contains("commented"));
  EXPECT_FALSE(found.contains("equal"));
}

TEST(DeclaredFunctions, AClassBodyEndsWithItsBrace) {
  const std::string text = "class A {\n  int f() { return 1; }\n};\nint g();\n";
  EXPECT_EQ(class_body(text, "A"), "\n  int f() { return 1; }\n");
  EXPECT_THROW(class_body(text, "B"), Error);
}

TEST(FitIn, AFunctionThatIsThereAlreadyIsRefused) {
  Overload again{{"Tensor", "IntList"}, 1};
  EXPECT_FALSE(fit_in({{{"Tensor", "IntList"}, 2}}, again));
}

TEST(FitIn, DefaultsGoUntilNoCallFitsTwo) {
  // sum(x) is there; sum(x, dtype = none) has to name the dtype.
  Overload longer{{"Tensor", "DType"}, 1};
  ASSERT_TRUE(fit_in({{{"Tensor"}, 1}}, longer));
  EXPECT_EQ(longer.required, 2u);
}

TEST(FitIn, FunctionsThatDifferBeforeTheirDefaultsStayAsTheyAre) {
  Overload by_dim{{"Tensor", "int64_t", "bool"}, 2};
  ASSERT_TRUE(fit_in({{{"Tensor"}, 1}, {{"Tensor", "IntList", "bool"}, 2}}, by_dim));
  EXPECT_EQ(by_dim.required, 2u);
}

TEST(FitIn, AShorterFunctionIsRefusedWhereItsCallsAreTaken) {
  Overload shorter{{"Tensor"}, 1};
  EXPECT_FALSE(fit_in({{{"Tensor", "bool"}, 1}}, shorter));
  Overload other{{"Tensor"}, 1};
  EXPECT_TRUE(fit_in({{{"Tensor", "bool"}, 2}}, other));
}

}  // namespace
}  // namespace lockstep::forms
