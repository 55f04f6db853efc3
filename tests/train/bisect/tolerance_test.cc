#include "train/bisect/tolerance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/base/current_scope.h"
#include "core/dispatch/mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "core/ops/pointwise/pointwise.h"

namespace lockstep::train {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

void watched(OperatorWatch& watch, const std::function<void()>& calls) {
  const ModeGuard guard(watch);
  watch.begin({0, 0});
  calls();
}

/// The check of a call that wrote `b` where the other run wrote `a`.
std::optional<BeyondTolerance> beyond(const Tensor& a, const Tensor& b, double tolerance) {
  ValueStore store(0, 1 << 20);
  watched(store, [&] { (void)a.clone(); });
  ToleranceCheck check(store, tolerance);
  watched(check, [&] { (void)b.clone(); });
  EXPECT_EQ(check.compared(), 1);
  return check.found();
}

TEST(ToleranceCheck, MeasuresByTheLargestNumberOfEither) {
  const Tensor a = tensor({1.0f, -8.0f, 2.0f});
  EXPECT_FALSE(beyond(a, tensor({2.0f, -8.0f, 2.0f}), 0.125));
  const auto found = beyond(a, tensor({2.0f, -8.0f, 2.0f}), 0.124);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->distance, 0.125);
  EXPECT_EQ(found->element.element, 0);
  EXPECT_EQ(found->element.tensor, 0u);
  EXPECT_EQ(found->element.a, "1 (0x3f800000)");
  EXPECT_EQ(found->element.b, "2 (0x40000000)");
  EXPECT_EQ(beyond(tensor({1.0f, 0.0f}), tensor({-4.0f, 0.0f}), 0.5)->distance, 1.25);
  EXPECT_EQ(beyond(tensor({1.0f, 16.0f}), tensor({2.0f, 16.0f}), 0)->distance, 0.0625)
      << "the largest one may be equal in both";
  EXPECT_EQ(beyond(tensor({16.0f, 1.0f}), tensor({16.0f, 2.0f}), 0)->distance, 0.0625);
}

TEST(ToleranceCheck, NamesTheFirstOfTheElementsThatLieFurthestApart) {
  const auto found =
      beyond(tensor({1.0f, 1.0f, 1.0f, 1.0f}), tensor({2.0f, 3.0f, -1.0f, 2.0f}), 0.1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->element.element, 1);
  EXPECT_EQ(found->element.differing, 4);
  EXPECT_EQ(found->distance, 2.0 / 3);
}

TEST(ToleranceCheck, NumbersThatAreNotFiniteMustBeTheSame) {
  const float nan = std::nanf("");
  EXPECT_FALSE(beyond(tensor({nan, 1.0f}), tensor({nan, 1.0f}), 0.1));
  EXPECT_FALSE(beyond(tensor({kInfinite, 1.0f}), tensor({kInfinite, 1.0f}), 0.1));
  for (const float other : {nan, kInfinite, -kInfinite}) {
    const auto found = beyond(tensor({2.0f, 1.0f}), tensor({2.5f, other}), 10);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->element.element, 1);
    EXPECT_EQ(found->distance, HUGE_VAL);
  }
  EXPECT_EQ(beyond(tensor({kInfinite, 1.0f}), tensor({kInfinite, 2.0f}), 0)->distance, 0.5)
      << "an infinite number is not the largest one";
}

TEST(ToleranceCheck, WholeNumbersMustBeTheSame) {
  const Tensor a = tensor({1000.0f}).to(DType::kI64);
  EXPECT_TRUE(beyond(a, tensor({1001.0f}).to(DType::kI64), 0.5));
  EXPECT_FALSE(beyond(a, a, 0.5));
}

TEST(ToleranceCheck, ComparesCallsOfOneNameAndTellsTheFirst) {
  const Tensor a = tensor({1.0f, 2.0f}), b = tensor({3.0f, 4.0f});
  ValueStore store(0, 1 << 20);
  watched(store, [&] {
    (void)(a * a);
    (void)(a * a);
    (void)(a + a);
  });
  EXPECT_EQ(store.next(), std::nullopt);
  ToleranceCheck check(store, 0.01);
  watched(check, [&] {
    (void)exp(a);  // the other has no such call
    (void)(a * a);
    const ModuleScope module("h.1");
    (void)(a * b);
    (void)(b + b);
  });
  EXPECT_EQ(check.compared(), 2) << "none after the first that is beyond it";
  ASSERT_TRUE(check.found());
  EXPECT_EQ(check.found()->name, (CallName{0, "mul.Tensor", 2}));
  EXPECT_EQ(check.found()->module, "h.1");
  EXPECT_EQ(check.found()->phase, Phase::kForward);
}

TEST(ToleranceCheck, ResultsOfOtherShapesOrTypesAreNotCompared) {
  for (const Tensor& other : {zeros({3}), zeros({2}, {DType::kF64, kCPU})}) {
    ValueStore store(0, 1 << 20);
    watched(store, [&] { (void)zeros({2}).clone(); });
    ToleranceCheck check(store, 0.1);
    watched(check, [&] { (void)other.clone(); });
    EXPECT_EQ(check.compared(), 0);
    EXPECT_FALSE(check.found());
  }
}

TEST(ValueStore, KeepsCallsFromTheFirstOnUntilTheirBytesAreUsed) {
  const Tensor a = tensor({1.0f, 2.0f});  // 8 bytes
  const auto calls = [&] {
    for (int i = 0; i < 4; ++i) (void)(a * a);
  };
  const auto kept = [&](const ValueStore& store) {
    std::string found;
    for (int64_t call = 1; call <= 4; ++call) {
      if (store.find({0, "mul.Tensor", call}) != nullptr) found += std::to_string(call);
    }
    return found;
  };
  ValueStore exact(0, 16), one_less(0, 15), later(2, 1), none_left(3, 8);
  for (ValueStore* const each : {&exact, &one_less, &later, &none_left}) watched(*each, calls);
  EXPECT_EQ(kept(exact), "12");
  EXPECT_EQ(exact.next(), 2u);
  EXPECT_EQ(kept(one_less), "1");
  EXPECT_EQ(one_less.next(), 1u);
  EXPECT_EQ(kept(later), "3") << "at least one";
  EXPECT_EQ(later.next(), 3u);
  EXPECT_EQ(kept(none_left), "4");
  EXPECT_EQ(none_left.next(), std::nullopt);
  EXPECT_EQ(exact.find({1, "mul.Tensor", 1}), nullptr);
  EXPECT_EQ(exact.find({0, "add.Tensor", 1}), nullptr);
  EXPECT_EQ(first_differing_element(*exact.find({0, "mul.Tensor", 2}), {tensor({1.0f, 4.0f})}),
            std::nullopt);
}

}  // namespace
}  // namespace lockstep::train
