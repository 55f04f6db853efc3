#include "train/bisect/captured_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/dispatch/mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ElementDifference, IsThatOfTheFirstElementWithOtherBits) {
  const Tensor a = tensor({{1.0f, 2.0f, 3.0f}, {4.0f, 0.0f, 6.0f}});
  const Tensor b = tensor({{1.0f, 2.0f, 3.0f}, {4.0f, -0.0f, 7.0f}});
  const auto found = first_differing_element({a, a}, {a, b});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tensor, 1u);
  EXPECT_EQ(found->type, "float32[2, 3]");
  EXPECT_EQ(found->element, 4);
  EXPECT_THAT(found->index, ElementsAre(1, 1));
  EXPECT_EQ(found->a, "0 (0x00000000)");
  EXPECT_EQ(found->b, "-0 (0x80000000)");
  EXPECT_EQ(found->differing, 2);
  EXPECT_EQ(found->elements, 6);
  EXPECT_EQ(first_differing_element({a, b}, {a, b}), std::nullopt);
}

TEST(ElementDifference, TellsOtherNumbersOfTensorsAndOtherTypesWithoutAnElement) {
  const Tensor a = tensor({1.0f, 2.0f});
  const auto count = first_differing_element({a}, {a, a});
  ASSERT_TRUE(count);
  EXPECT_EQ(count->a, "1 tensors");
  EXPECT_EQ(count->b, "2 tensors");
  EXPECT_EQ(count->differing, 0);
  const auto type = first_differing_element({a, a}, {a, a.to(DType::kF64)});
  ASSERT_TRUE(type);
  EXPECT_EQ(type->tensor, 1u);
  EXPECT_EQ(type->a, "float32[2]");
  EXPECT_EQ(type->b, "float64[2]");
  EXPECT_EQ(type->differing, 0);
}

TEST(ElementDifference, ShowsAsManyDigitsAsTheTypeHas) {
  const auto text = [](const Tensor& tensor) { return describe_element(tensor, tensor, 1).b; };
  EXPECT_EQ(text(tensor({0.0f, 0.1f})), "0.100000001 (0x3dcccccd)");
  EXPECT_EQ(text(full({2}, 0.1, {DType::kF64, kCPU})), "0.10000000000000001 (0x3fb999999999999a)");
  EXPECT_EQ(text(tensor({0.0f, 0.1f}).to(DType::kBF16)), "0.100097656 (0x3dcd)");
  EXPECT_EQ(text(tensor({0.0f, -2.0f}).to(DType::kI64)), "-2 (0xfffffffffffffffe)");
}

TEST(ElementDifference, AnIndexCountsTheLastDimensionFirst) {
  const Tensor zeros_of_three = zeros({2, 3, 4});
  const auto index = [&](int64_t element) {
    return describe_element(zeros_of_three, zeros_of_three, element).index;
  };
  EXPECT_THAT(index(0), ElementsAre(0, 0, 0));
  EXPECT_THAT(index(3), ElementsAre(0, 0, 3));
  EXPECT_THAT(index(4), ElementsAre(0, 1, 0));
  EXPECT_THAT(index(23), ElementsAre(1, 2, 3));
}

/// What a capture keeps of the calls of `calls`, which are part (0, 0) of a step.
template <class Calls>
std::optional<CapturedCall> captured_of(size_t call, const Calls& calls,
                                        const StepPart& wanted = {0, 0}) {
  CallCapture capture(wanted, call);
  const ModeGuard guard(capture);
  capture.begin({0, 0});
  calls();
  return capture.captured();
}

TEST(CallCapture, KeepsWhatOneCallReadAndWrote) {
  const Tensor a = tensor({1.0f, 2.0f}), b = tensor({3.0f, 4.0f});
  const auto calls = [&] {
    (void)(a + b);
    (void)(a * b);
  };
  const auto sum = captured_of(0, calls), product = captured_of(1, calls);
  ASSERT_TRUE(sum && product);
  EXPECT_EQ(first_differing_element(sum->written, {tensor({4.0f, 6.0f})}), std::nullopt);
  EXPECT_EQ(first_differing_element(product->written, {tensor({3.0f, 8.0f})}), std::nullopt);
  EXPECT_FALSE(captured_of(2, calls));
  EXPECT_FALSE(captured_of(0, calls, {0, 1}));
  EXPECT_FALSE(captured_of(0, calls, {1, 0}));
}

TEST(CallCapture, ArgumentsThatAreReadAndChangedAreComparedAsTheyWere) {
  const auto after_adding = [](const Tensor& to, const Tensor& added, double factor) {
    const Tensor changed = to.clone();
    return *captured_of(0, [&] { (void)changed.add_(added, factor); });
  };
  const Tensor a = tensor({1.0f, 2.0f}), b = tensor({3.0f, 4.0f});
  const CapturedCall call = after_adding(a, b, 2);
  EXPECT_THAT(differing_arguments(call, after_adding(a, b, 2)), IsEmpty());
  EXPECT_THAT(differing_arguments(call, after_adding(b, b, 2)), ElementsAre("self"));
  EXPECT_THAT(differing_arguments(call, after_adding(a, a, 2)), ElementsAre("other"));
  EXPECT_THAT(differing_arguments(call, after_adding(a, b, 3)), ElementsAre("alpha"));
  EXPECT_THAT(differing_arguments(call, after_adding(a, a, 3)), ElementsAre("other", "alpha"));
}

TEST(CallCapture, ArgumentsThatAreOverwrittenAreNotCompared) {
  const Tensor a = tensor({1.0f, 2.0f}), b = tensor({3.0f, 4.0f});
  const auto differing = [&](const auto& overwrite) {
    const auto captured = [&](const Tensor& first) {
      const Tensor changed = first.clone();
      return *captured_of(0, [&] { overwrite(changed); });
    };
    return differing_arguments(captured(a), captured(b));
  };
  EXPECT_THAT(differing([&](const Tensor& each) { (void)each.copy_(a); }), IsEmpty());
  EXPECT_THAT(differing([](const Tensor& each) { (void)each.fill_(2); }), IsEmpty());
  EXPECT_THAT(differing([](const Tensor& each) { (void)each.zero_(); }), IsEmpty());
  EXPECT_THAT(differing([&](const Tensor& each) { (void)add_out(each, a, a); }), IsEmpty());
}

}  // namespace
}  // namespace lockstep::train
