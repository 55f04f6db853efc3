#include "nn/joint_linear.h"

#include <gtest/gtest.h>

#include <cstring>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "nn/initial_values.h"

namespace lockstep::nn {
namespace {

bool have_equal_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return same(x.sizes(), y.sizes()) && x.dtype() == y.dtype() &&
         std::memcmp(x.data(), y.data(), x.nbytes()) == 0;
}

/// The largest difference of two elements.
float distance(const Tensor& a, const Tensor& b) { return max(abs(a - b)).item<float>(); }

bool lie_side_by_side(const Tensor& first, const Tensor& second) {
  return static_cast<std::byte*>(first.data()) + first.nbytes() == second.data();
}

struct Projections {
  Projections() : query(16, 24, false), key(16, 8, false), joint({&query, &key}) {}
  Linear query, key;
  JointLinear joint;
};

TEST(JointLinear, GivesTheResultsOfItsLayersSideBySide) {
  manual_seed(1);
  const Projections of;
  const Tensor x = randn({2, 3, 16});
  const Tensor each = cat({of.query.forward(x), of.key.forward(x)}, -1);
  const Tensor joint = of.joint.forward(x);
  EXPECT_LT(distance(joint.detach(), each.detach()), 1e-5);
  joint.sum().backward();
  const Tensor of_query = of.query.weight.grad(), of_key = of.key.weight.grad();
  of.query.weight.set_grad({});
  of.key.weight.set_grad({});
  each.sum().backward();
  EXPECT_LT(distance(of.query.weight.grad(), of_query), 1e-5);
  EXPECT_LT(distance(of.key.weight.grad(), of_key), 1e-5);
}

TEST(JointLinear, WeightsAndTheirKeptCastsLieSideBySide) {
  manual_seed(1);
  const Projections of;
  EXPECT_TRUE(lie_side_by_side(of.query.weight, of.key.weight));
  keep_cast(of.query.weight);
  keep_cast(of.key.weight);
  const auto run = [&] {
    const AutocastGuard autocast(DeviceType::kCPU, true, DType::kF16);
    return of.joint.forward(ones({2, 16}));
  };
  const Tensor before = run();
  const Tensor old = kept_cast(of.query.weight), values = old.clone();
  EXPECT_TRUE(lie_side_by_side(old, kept_cast(of.key.weight)));
  EXPECT_TRUE(have_equal_bits(old, of.query.weight.detach().to(DType::kF16)));
  {
    const NoGradGuard no_grad;
    mul_(of.query.weight, -1);
    mul_(of.key.weight, -1);
  }
  const Tensor after = run();
  EXPECT_TRUE(have_equal_bits(after.detach(), neg(before.detach()))) << "casts of the new values";
  EXPECT_TRUE(lie_side_by_side(kept_cast(of.query.weight), kept_cast(of.key.weight)));
  EXPECT_TRUE(have_equal_bits(old, values)) << "graphs that saved them read the old values";
}

TEST(JointLinear, OneWeightChangedAloneIsCastAgainAlone) {
  manual_seed(1);
  const Projections of;
  keep_cast(of.query.weight);
  keep_cast(of.key.weight);
  const auto run = [&] {
    const AutocastGuard autocast(DeviceType::kCPU, true, DType::kF16);
    return of.joint.forward(ones({2, 16})).detach();
  };
  (void)run();
  {
    const NoGradGuard no_grad;
    mul_(of.key.weight, 2);
  }
  const Tensor found = run();
  const AutocastGuard autocast(DeviceType::kCPU, true, DType::kF16);
  const Tensor x = ones({2, 16});
  const Tensor each = cat({of.query.forward(x), of.key.forward(x)}, -1);
  EXPECT_LT(distance(found.to(DType::kF32), each.detach().to(DType::kF32)), 1e-2);
}

TEST(JointLinear, HooksOfItsLayersAreCalled) {
  const Projections of;
  int calls = 0;
  const ForwardHookHandle handle = of.key.register_forward_hook(
      [&](const Module&, std::span<const Tensor>, std::span<Tensor> results) {
        ++calls;
        results[0] = zeros(results[0].sizes());
      });
  const Tensor found = of.joint.forward(ones({2, 16}));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(abs(found.slice(-1, 24)).sum().item<float>(), 0);
  EXPECT_GT(abs(found.slice(-1, 0, 24)).sum().item<float>(), 0);
}

TEST(JointLinear, LeavesDeferredWeightsAlone) {
  const DeferValuesGuard later;
  const Projections of;
  EXPECT_EQ(of.query.weight.size(0), 24);
}

}  // namespace
}  // namespace lockstep::nn
