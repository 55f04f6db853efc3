// What every operator must declare; every operator must have samples for the other tests here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops/operator_forms.h"

namespace lockstep {
namespace {

using ::testing::IsEmpty;

/// Names of the operators for which `test` is false.
template <class Test>
std::vector<std::string> operators_without(Test&& test) {
  std::vector<std::string> names;
  for (const Operator* op : functional_operators()) {
    if (!test(*op)) names.push_back(op->name());
  }
  return names;
}

TEST(EveryOperator, HasADoc) {
  EXPECT_THAT(operators_without([](const Operator& op) { return !op.doc().empty(); }), IsEmpty());
}

TEST(EveryOperator, HasAKindThatCanRun) {
  EXPECT_THAT(operators_without([](const Operator& op) {
                const bool by_kernel = op.kind() == OpKind::kStructured ||
                                       op.kind() == OpKind::kDynamic ||
                                       op.kind() == OpKind::kHostValue;
                return !by_kernel || op.explain(Key::kCPU) != "missing";
              }),
              IsEmpty());
}

TEST(EveryOperator, HasADerivativeOrAReasonForNone) {
  EXPECT_THAT(operators_without([](const Operator& op) {
                const Derivative& derivative = op.derivative();
                return op.kind() == OpKind::kComposite || derivative.exists() ||
                       !derivative.not_differentiable_reason.empty();
              }),
              IsEmpty());
}

TEST(EveryOperator, HasASample) {
  EXPECT_THAT(operators_without([](const Operator& op) {
                const auto found = op_samples().find(op.name());
                const bool has = found != op_samples().end() && !found->second.calls.empty();
                return has || is_writing_form(op);  // forms_test.cc uses the functional one's
              }),
              IsEmpty());
}

TEST(EveryOperator, HasALargeSampleWhenItHasAKernel) {
  EXPECT_THAT(operators_without([](const Operator& op) {
                const auto found = op_samples().find(op.name());
                return op.kind() != OpKind::kStructured ||
                       (found != op_samples().end() && !found->second.large.empty());
              }),
              IsEmpty());
}

TEST(EverySample, IsOfARegisteredFunctionalOperator) {
  std::vector<std::string> unknown;
  for (const auto& [name, samples] : op_samples()) {
    const Operator* op = dispatcher().find_or_null(name);
    if (op == nullptr || op->form() != OpForm::kFunctional) unknown.push_back(name);
  }
  EXPECT_THAT(unknown, IsEmpty());
}

TEST(EverySample, RunsTwiceWithEqualBits) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments first = arguments_of(op, sample);
      Arguments second = arguments_of(op, sample);
      const Results once = call_operator(op, first);
      const Results again = call_operator(op, second);
      if (samples.unspecified_values) return;
      EXPECT_EQ(difference(again, once, 0), "");
    });
  });
}

TEST(EverySample, LeavesArgumentsThatAreNotWrittenAsTheyWere) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    for_each_sample(samples.calls, [&](const Sample& sample) {
      const Arguments before = arguments_of(op, sample);
      Arguments arguments = arguments_of(op, sample);
      call_operator(op, arguments);
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (op.schema().arguments[i].written || !arguments[i].is_tensor()) continue;
        EXPECT_EQ(difference({{arguments[i].tensor()}}, {{before[i].tensor()}}, 0), "")
            << op.schema().arguments[i].name;
      }
    });
  });
}

}  // namespace
}  // namespace lockstep
