#include "train/bisect/operator_trace.h"

#include <gtest/gtest.h>

#include "core/base/current_scope.h"
#include "core/dispatch/dispatcher.h"
#include "core/dispatch/mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"

namespace lockstep::train {
namespace {

TEST(OperatorTrace, HashesAreOfTypesSizesAndBitsInRowMajorOrder) {
  const Tensor a = tensor({{1.0f, 2.0f}, {3.0f, 4.0f}});
  EXPECT_EQ(hash_of({a}), hash_of({a.t().contiguous().t()}));
  EXPECT_NE(hash_of({a}), hash_of({a.t()}));
  EXPECT_NE(hash_of({a}), hash_of({a.view({4})}));
  EXPECT_NE(hash_of({a}), hash_of({a.view({1, 4})}));
  EXPECT_NE(hash_of({a}), hash_of({a, a}));
  EXPECT_NE(hash_of({zeros({2}, {DType::kF32, kCPU})}), hash_of({zeros({2}, {DType::kI32, kCPU})}));
  EXPECT_NE(hash_of({zeros({0, 2})}), hash_of({zeros({2, 0})}));
}

TracedCall call_of(const char* name, uint64_t bits) {
  return {.op = &dispatcher().find(name), .written = ContentHasher().add(bits).result()};
}

std::vector<TracedPart> two_parts() {
  return {{{0, 0}, {call_of("mm", 1), call_of("relu", 2)}}, {{0, 1}, {call_of("mm", 3)}}};
}

/// "part.call", with "?" where the operators are others.
std::string place_of(const std::vector<TracedPart>& a, const std::vector<TracedPart>& b) {
  const std::optional<CallPlace> found = first_difference(a, b);
  if (!found) return "none";
  return std::to_string(found->part) + "." + std::to_string(found->call) +
         (found->same_operator ? "" : "?");
}

TEST(OperatorTrace, TheFirstDifferenceIsInBitsOrInTheCallsThatAreMade) {
  const std::vector<TracedPart> a = two_parts();
  EXPECT_EQ(place_of(a, a), "none");
  std::vector<TracedPart> b = a;
  b[1].calls[0] = call_of("mm", 4);
  EXPECT_EQ(place_of(a, b), "1.0");
  b[0].calls[1] = call_of("relu", 4);
  EXPECT_EQ(place_of(a, b), "0.1");
  b = a;
  b[0].calls[1] = call_of("exp", 2);
  EXPECT_EQ(place_of(a, b), "0.1?");
  b = a;
  b[0].calls.push_back(call_of("mm", 1));
  EXPECT_EQ(place_of(a, b), "0.2?");
  EXPECT_EQ(place_of(b, a), "0.2?");
  b = a;
  b.pop_back();
  EXPECT_EQ(place_of(a, b), "1.0?");
  EXPECT_EQ(place_of(b, a), "1.0?");
}

TEST(OperatorTrace, NumbersTheCallsOfEachPartWithTheirModuleAndPhase) {
  OperatorTrace trace;
  const Tensor a = tensor({1.0f, 2.0f});
  {
    const ModeGuard guard(trace);
    (void)(a + a);  // before any part
    trace.begin({4, 0});
    {
      const ModuleScope module("h.0");
      (void)(a * a);
    }
    (void)a.view({2, 1});
    (void)(a * a * a);
    trace.begin({4, std::nullopt});
    const PhaseGuard phase(Phase::kOptimizer);
    (void)(a * a);
  }
  const std::vector<TracedPart> parts = trace.take();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].part, (StepPart{4, 0}));
  EXPECT_EQ(parts[1].part, (StepPart{4, std::nullopt}));
  ASSERT_EQ(parts[0].calls.size(), 3u);
  ASSERT_EQ(parts[1].calls.size(), 1u);
  const TracedCall& first = parts[0].calls[0];
  EXPECT_EQ(first.op->name(), "mul.Tensor");
  EXPECT_EQ(first.module, "h.0");
  EXPECT_EQ(first.phase, Phase::kForward);
  EXPECT_EQ(first.call, 1);
  EXPECT_EQ(first.written, hash_of({tensor({1.0f, 4.0f})}));
  EXPECT_EQ(parts[0].calls[1].call, 2);
  EXPECT_EQ(parts[0].calls[1].module, "");
  EXPECT_EQ(parts[0].calls[2].call, 3);
  EXPECT_EQ(parts[0].calls[2].written, hash_of({tensor({1.0f, 8.0f})}));
  EXPECT_EQ(parts[1].calls[0].call, 1);
  EXPECT_EQ(parts[1].calls[0].phase, Phase::kOptimizer);
  EXPECT_TRUE(trace.take().empty());
}

}  // namespace
}  // namespace lockstep::train
