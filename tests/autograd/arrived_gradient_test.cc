#include "core/dispatch/arrived_gradient.h"

#include <gtest/gtest.h>

#include "autograd/accumulate_grad.h"
#include "autograd/autograd.h"
#include "autograd/checkpoint.h"
#include "autograd/gradcheck.h"
#include "autograd/hooks.h"
#include "core/device/copies.h"
#include "core/dispatch/op_counter.h"
#include "core/ops/factory/literal.h"
#include "core/ops/index/index.h"
#include "core/ops/matmul/matmul.h"
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

/// The loss of a tied model: the weight embeds tokens, and classifies.
Tensor tied_loss(const Tensor& weight, const Tensor& tokens) {
  return mm(embedding(weight, tokens).exp(), weight.t()).sum();
}

TEST(ArrivedGradient, OfATiedWeightGetsTheRowsOfTheEmbeddingInPlace) {
  const Tensor tokens = tensor({2, 0, 2});
  const auto gradient = [&](bool hooked, const Tensor& place) {
    const Tensor weight = random_tensor({6, 4}, DType::kF32, 1).set_requires_grad();
    if (place.defined()) set_grad_destination(weight, place);
    const Tensor rows = embedding(weight, tokens);
    HookHandle handle;
    if (hooked) handle = register_posthook(*rows.grad_fn(), [](std::span<Tensor>, auto) {});
    const Tensor loss = mm(rows.exp(), weight.t()).sum();
    OpCounter counter;
    {
      const ModeGuard on(counter);
      loss.backward();
    }
    EXPECT_EQ(counter.counts(Phase::kBackward).contains("_embedding_gradient_added_"), !hooked)
        << counter.table();
    EXPECT_EQ(additions(counter), hooked ? 1 : 0) << counter.table();
    if (place.defined()) {
      EXPECT_EQ(weight.grad().data(), place.data());
    }
    return weight.grad();
  };
  // The copies that the products make of gradients without strides are there in all cases.
  const auto copies_of = [&](bool hooked, const Tensor& place, const Tensor& wanted) {
    const int64_t before = hidden_copies().copies;
    expect_near(gradient(hooked, place), wanted, 0, 0);
    return hidden_copies().copies - before;
  };
  const Tensor separate = gradient(true, {});
  const int64_t without_place = copies_of(true, {}, separate);
  EXPECT_EQ(copies_of(false, {}, separate), without_place);
  EXPECT_EQ(copies_of(false, zeros({6, 4}), separate), without_place);
  EXPECT_EQ(copies_of(true, zeros({6, 4}), separate), without_place);
}

TEST(ArrivedGradient, OfATiedWeightHasASecondDerivative) {
  const Tensor tokens = tensor({1, 0, 1});
  const TensorFunction loss = [&](TensorList t) { return tied_loss(t[0], tokens); };
  EXPECT_TRUE(gradgradcheck(loss, {random_tensor({3, 2}, DType::kF64, 1).set_requires_grad()}));
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
