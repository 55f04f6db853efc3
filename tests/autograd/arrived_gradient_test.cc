#include "core/dispatch/arrived_gradient.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/checkpoint.h"
#include "core/dispatch/op_counter.h"
#include "core/ops/norm/stream_norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

constexpr double kNormEpsilon = 1e-5;

/// A block of a residual network: x + exp(norm(x)).
Tensor residual_block(const Tensor& x) {
  return x + layer_norm_of_stream(x, {8}, {}, {}, kNormEpsilon, DType::kF32).exp();
}

/// Calls of additions in backward.
int64_t additions(const OpCounter& counter) {
  int64_t calls = 0;
  for (const auto& [name, count] : counter.counts(Phase::kBackward)) {
    if (name.starts_with("add")) calls += count.calls;
  }
  return calls;
}

TEST(ArrivedGradient, IsAddedByTheKernelThatTakesIt) {
  const Tensor leaf = random_tensor({4, 8}, DType::kF32, 1).set_requires_grad();
  const Tensor loss = residual_block(residual_block(leaf * 2)).sum();
  OpCounter counter;
  {
    const ModeGuard on(counter);
    loss.backward();
  }
  EXPECT_EQ(additions(counter), 0) << counter.table();
}

TEST(ArrivedGradient, HasTheBitsOfTheSeparateAddition) {
  const Tensor leaf = random_tensor({4, 8}, DType::kF32, 1).set_requires_grad();
  const Tensor weights = random_tensor({4, 8}, DType::kF32, 2);
  const auto gradient = [&](bool hooked) {
    const Tensor x = leaf * 2;
    const Tensor normed = layer_norm_of_stream(x, {8}, {}, {}, kNormEpsilon, DType::kF32);
    int seen = 0;
    HookHandle handle;
    // A hook sees the norm's own gradient, so nothing is taken.
    if (hooked) {
      handle = register_posthook(*normed.grad_fn(),
                                 [&seen](std::span<Tensor>, std::span<const Tensor>) { ++seen; });
    }
    OpCounter counter;
    Tensor result;
    {
      const ModeGuard on(counter);
      result = grad({x + normed.exp()}, {leaf}, {weights})[0];
    }
    EXPECT_EQ(seen, hooked ? 1 : 0);
    EXPECT_EQ(additions(counter), hooked ? 1 : 0) << counter.table();
    return result;
  };
  const Tensor taken = gradient(false), separate = gradient(true);
  expect_near(taken, separate, 0, 0);
}

TEST(ArrivedGradient, ReachesHooksOfTheTensorAsTheWholeSum) {
  const Tensor leaf = random_tensor({4, 8}, DType::kF32, 1).set_requires_grad();
  const Tensor x = leaf * 2;
  Tensor seen;
  x.register_hook([&seen](const Tensor& gradient) {
    seen = gradient;
    return Tensor();
  });
  const Tensor got = grad({residual_block(x).sum()}, {leaf})[0];
  expect_near(got, seen * 2, 1e-6, 1e-6);
}

TEST(ArrivedGradient, OutsideOfABackwardThereIsNone) {
  EXPECT_FALSE(take_arrived_gradient(0).defined());
}

TEST(ArrivedGradient, IsTakenInARecomputedBlockAsWell) {
  const auto gradient = [&](bool checkpointed) {
    const Tensor leaf = random_tensor({4, 8}, DType::kF32, 1).set_requires_grad();
    const Tensor x = leaf * 2;
    const Tensor y = checkpointed ? checkpoint(residual_block, x) : residual_block(x);
    return grad({(y * y).sum()}, {leaf})[0];
  };
  expect_near(gradient(true), gradient(false), 0, 0);
}

}  // namespace
}  // namespace lockstep
