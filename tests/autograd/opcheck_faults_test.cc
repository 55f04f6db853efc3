// Faults of operators that opcheck must name, and what it must not take for one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "autograd/function.h"
#include "autograd/opcheck.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "tests/conformance/elements.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Tensor sample_matrix(DType dtype = DType::kF32) {
  const Tensor made = empty({2, 3}, dtype);
  set_elements(made, std::vector<double>{1, -2, 3, 0.5, 4, -6});
  return made;
}

std::vector<std::string> faults_of(const char* op, std::vector<Value> arguments,
                                   const OpcheckOptions& options = {}) {
  const OpSample sample{std::move(arguments), {}};
  return opcheck(op, {&sample, 1}, options);
}

using Two = std::tuple<Tensor, Tensor>;
using List = std::vector<Tensor>;

bool has_elements(const Tensor& tensor) { return tensor.device() != kMeta; }

LS_OP(twins, Two(const Tensor&), "opcheck_test_twins(Tensor self) -> (Tensor, Tensor)")
    .composite([](const Tensor& x) {
      const Tensor y = x * 2;
      return Two(y, y.t());
    });

TEST(OpcheckFaults, ResultsThatShareMemoryAreFound) {
  EXPECT_THAT(
      faults_of("opcheck_test_twins", {sample_matrix()}),
      ElementsAre("[opcheck_test_twins] sample 0: aliasing: results 0 and 1 share memory."));
}

LS_OP(twin_views, Two(const Tensor&),
      "opcheck_test_twin_views(Tensor(a) self) -> (Tensor(a), Tensor(a))")
    .composite([](const Tensor& x) { return Two(x.t(), x.slice(0, 0, 1)); });

TEST(OpcheckFaults, ResultsThatTheSchemaCallsViewsMayShareMemory) {
  EXPECT_THAT(faults_of("opcheck_test_twin_views", {sample_matrix()}), IsEmpty());
}

LS_OP(moody, List(const Tensor&), "opcheck_test_moody(Tensor self) -> Tensor[]")
    .composite([](const Tensor& x) {
      return has_elements(x) ? List{x * 1} : List{x * 1, x * 2};
    });
LS_OP(typed, Tensor(const Tensor&), "opcheck_test_typed(Tensor self) -> Tensor")
    .composite([](const Tensor& x) { return has_elements(x) ? x * 2 : x.to(DType::kI64); });
LS_OP(sized, Tensor(const Tensor&), "opcheck_test_sized(Tensor self) -> Tensor")
    .composite([](const Tensor& x) { return has_elements(x) ? x * 2 : x.slice(1, 0, 2) * 2; });

TEST(OpcheckFaults, ARuleThatContradictsTheResultsIsQuoted) {
  EXPECT_THAT(faults_of("opcheck_test_moody", {sample_matrix()}),
              ElementsAre("[opcheck_test_moody] sample 0: rule: gives 2 results on meta and 1 with "
                          "elements."));
  EXPECT_THAT(
      faults_of("opcheck_test_typed", {sample_matrix()}),
      ElementsAre("[opcheck_test_typed] sample 0: rule: result 0 differs: on meta int64[2, 3] "
                  "with strides [3, 1], with elements float32[2, 3] with strides [3, 1]."));
  EXPECT_THAT(faults_of("opcheck_test_sized", {sample_matrix()}),
              ElementsAre(HasSubstr("rule: result 0 differs: on meta float32[2, 2] with strides "
                                    "[2, 1], with elements float32[2, 3] with strides [3, 1].")));
}

LS_OP(rank_one, Tensor(const Tensor&, const Tensor&),
      "opcheck_test_batched(Tensor self, Tensor other) -> Tensor")
    .composite([](const Tensor& a, const Tensor& b) { return a * b; })
    .batching([](const Operator&, uint64_t batched, Stack& stack) {
      const Tensor a = stack.arguments()[0].tensor(), b = stack.arguments()[1].tensor();
      stack.results().emplace_back(batched == 3 ? a * b * 2 : a * b);
    });
LS_OP(lost, Tensor(const Tensor&), "opcheck_test_lost(Tensor self) -> Tensor")
    .composite([](const Tensor& a) { return a * 2; })
    .batching([](const Operator&, uint64_t, Stack&) {});
LS_OP(first_only, Tensor(const Tensor&), "opcheck_test_first_only(Tensor self) -> Tensor")
    .composite([](const Tensor& a) { return a * 2; })
    .batching([](const Operator&, uint64_t, Stack& stack) {
      const Tensor a = stack.arguments()[0].tensor();
      stack.results().emplace_back((a.slice(0, 0, 1) * 2).expand(a.sizes()));
    });

TEST(OpcheckFaults, ABatchOfAllArgumentsIsCheckedBesideThoseOfEach) {
  EXPECT_THAT(faults_of("opcheck_test_batched", {sample_matrix(), sample_matrix()}),
              ElementsAre("[opcheck_test_batched] sample 0: batching: arguments 0b11 batched, "
                          "element 0: result 0: element 0: expected 1, got 2.",
                          "[opcheck_test_batched] sample 0: batching: arguments 0b11 batched, "
                          "element 1: result 0: element 0: expected 0.25, got 0.5."));
  EXPECT_THAT(
      faults_of("opcheck_test_lost", {sample_matrix()}),
      ElementsAre(HasSubstr("batching: arguments 0b1 batched, element 0: expected 1 results, "
                            "got 0."),
                  HasSubstr("element 1: expected 1 results, got 0.")));
  EXPECT_THAT(faults_of("opcheck_test_first_only", {sample_matrix()}),
              ElementsAre(HasSubstr("element 1: result 0: element 0: expected 1, got 2")))
      << "the second sample differs from the first";
}

std::vector<std::pair<DType, DType>> g_seen;

LS_OP(promoted, Tensor(const Tensor&, const Tensor&),
      "opcheck_test_promoted(Tensor self, Tensor other) -> Tensor")
    .autocast(Autocast::kPromote)
    .composite([](const Tensor& a, const Tensor& b) {
      g_seen.emplace_back(a.dtype(), b.dtype());
      return a * b;
    });
LS_OP(lowered, Tensor(const Tensor&, const Tensor&),
      "opcheck_test_lowered(Tensor self, Tensor other) -> Tensor")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& a, const Tensor& b) {
      g_seen.emplace_back(a.dtype(), b.dtype());
      return a * b;
    });
LS_OP(raised, Tensor(const Tensor&, const Tensor&),
      "opcheck_test_raised(Tensor self, Tensor other) -> Tensor")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& a, const Tensor& b) {
      g_seen.emplace_back(a.dtype(), b.dtype());
      return a * b;
    });

TEST(OpcheckFaults, TheDtypesOfEachAutocastClassAreTried) {
  const auto last_with = [](const char* op, const Tensor& a, const Tensor& b) {
    g_seen.clear();
    EXPECT_THAT(faults_of(op, {a, b}), IsEmpty());
    return g_seen.back();
  };
  const Tensor x = sample_matrix(), whole = sample_matrix(DType::kI64);
  using DTypes = std::pair<DType, DType>;
  EXPECT_EQ(last_with("opcheck_test_promoted", x, x), DTypes(DType::kBF16, DType::kF32));
  EXPECT_EQ(last_with("opcheck_test_promoted", whole, x), DTypes(DType::kI64, DType::kBF16));
  EXPECT_EQ(last_with("opcheck_test_lowered", x, x), DTypes(DType::kBF16, DType::kBF16));
  EXPECT_EQ(last_with("opcheck_test_raised", x, whole), DTypes(DType::kF32, DType::kI64));
}

/// x^2, whose derivative is right and a constant to the second one.
struct Cut : Function<Cut> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    return {grad * ctx.saved(0).detach() * 2};
  }
};
LS_OP(cut, Tensor(const Tensor&), "opcheck_test_cut(Tensor self) -> Tensor")
    .composite([](const Tensor& x) { return Cut::apply(x); });

TEST(OpcheckFaults, SecondDerivativesAreCheckedOnRequest) {
  EXPECT_THAT(faults_of("opcheck_test_cut", {sample_matrix()}), IsEmpty());
  EXPECT_THAT(faults_of("opcheck_test_cut", {sample_matrix()}, {.second_derivative = true}),
              ElementsAre(HasSubstr("derivative: threw: [gradcheck] the derivative of output 0")));
  EXPECT_THAT(
      faults_of("mul.Tensor", {sample_matrix(), sample_matrix()}, {.second_derivative = true}),
      IsEmpty());
}

LS_OP(near, Tensor(const Tensor&), "opcheck_test_near(Tensor self) -> Tensor")
    .composite([](const Tensor& a) { return a * 2; })
    .batching([](const Operator&, uint64_t, Stack& stack) {
      stack.results().emplace_back(stack.arguments()[0].tensor() * 2.02);
    });

TEST(OpcheckFaults, ResultsMayDifferByTheTolerance) {
  EXPECT_THAT(faults_of("opcheck_test_near", {sample_matrix()}), Not(IsEmpty()));
  EXPECT_THAT(faults_of("opcheck_test_near", {sample_matrix()}, {.tolerance = 0.02}), IsEmpty())
      << "of one and the element: |2.02 x - 2 x| <= 0.02 (1 + |2 x|)";
}

TEST(OpcheckFaults, NanAndInfinityAreEqualToThemselves) {
  const std::vector<std::string> of_log = faults_of("log", {sample_matrix()});
  EXPECT_THAT(of_log, Each(HasSubstr("derivative: "))) << "of a negative number";
  EXPECT_THAT(faults_of("div.Tensor", {sample_matrix(), sample_matrix() * 0}),
              Each(HasSubstr("derivative: ")));
}

TEST(OpcheckFaults, WhatDrawsRandomNumbersIsNotCompared) {
  const Tensor half = full({64}, 0.5);
  EXPECT_THAT(faults_of("bernoulli", {half}), IsEmpty());
}

TEST(OpcheckFaults, AbsentTensorsAndListsArePassedOn) {
  const Tensor x = sample_matrix();
  EXPECT_THAT(faults_of("linear", {x, x, Value()}), IsEmpty());
  EXPECT_THAT(faults_of("cat", {List{x, x}, 0}), IsEmpty());
}

TEST(OpcheckFaults, EachSampleIsNumbered) {
  const std::vector<OpSample> samples = {{{sample_matrix()}, {}}, {{sample_matrix() * 2}, {}}};
  EXPECT_THAT(opcheck("opcheck_test_twins", samples),
              ElementsAre(HasSubstr("sample 0: aliasing"), HasSubstr("sample 1: aliasing")));
  EXPECT_THAT(opcheck("mul.Tensor", {}), IsEmpty());
}

}  // namespace
}  // namespace lockstep
