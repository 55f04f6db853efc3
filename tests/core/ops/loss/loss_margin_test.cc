#include "core/ops/loss/loss_margin.h"

#include "autograd/autograd.h"
#include "core/ops/loss/loss_likelihood.h"
#include "core/ops/reduce/reduce.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(BinaryCrossEntropy, IsFiniteAtProbabilitiesOfZeroAndOne) {
  const Tensor x = tensor_of({0, 1, 0, 1}).set_requires_grad();
  const Tensor losses = binary_cross_entropy(x, tensor_of({0, 1, 1, 0}), {}, Reduction::kNone);
  expect_values(losses, {0, 0, 100, 100});
  losses.sum().backward();
  expect_near(x.grad(), tensor_of({0, 0, -1e12, 1e12}), 0, 1e-6);
  expect_values(
      binary_cross_entropy(tensor_of({-0.5, 1.5}), tensor_of({0.5, 0.5}), {}, Reduction::kNone),
      {kNaN, kNaN});
}

TEST(SoftMarginLoss, DoesNotOverflow) {
  const Tensor x = tensor_of({1000, -1000}).set_requires_grad();
  const Tensor losses = soft_margin_loss(x, tensor_of({1, 1}), Reduction::kNone);
  expect_values(losses, {0, 1000});
  losses.sum().backward();
  expect_values(x.grad(), {0, -1});
}

TEST(MultiMarginLoss, LeavesOutTheTargetItself) {
  const Tensor scores = tensor_of({0.5, 0, 2}).view({1, 3});
  const Tensor target = tensor_of({0}, DType::kI64);
  // max(0, 1 - 0.5 + 0) = 0.5 and max(0, 1 - 0.5 + 2) = 2.5, over three classes.
  EXPECT_NEAR(multi_margin_loss(scores, target).item<float>(), 1, 1e-6);
  EXPECT_NEAR(multi_margin_loss(scores, target, 2).item<float>(), 6.5 / 3, 1e-6);
  EXPECT_NEAR(multi_margin_loss(scores, target, 1, 1, tensor_of({2, 1, 1})).item<float>(), 2, 1e-6);
  expect_error<Error>([&] { multi_margin_loss(scores, target, 3); }, "[multi_margin_loss]");
  expect_error<IndexError>([&] { multi_margin_loss(scores, tensor_of({3}, DType::kI64)); });
  expect_error<DTypeError>([&] { multi_margin_loss(scores, tensor_of({0})); }, "int64");
}

TEST(MultilabelMarginLoss, TakesTargetsUpToTheFirstNegative) {
  const Tensor scores = tensor_of({0.1, 0.2, 0.4, 0.8});
  const Tensor target = tensor_of({3, 0, -1, 1}, DType::kI64);
  // Targets 3 and 0 against classes 1 and 2: 0.4 + 0.6 + 1.1 + 1.3, over four classes.
  EXPECT_NEAR(multilabel_margin_loss(scores, target).item<float>(), 0.85, 1e-6);
}

TEST(CosineEmbeddingLoss, RefusesShapesThatDoNotFit) {
  expect_error<ShapeError>(
      [] {
        cosine_embedding_loss(counting({2, 3}), counting({2, 3}), counting({}));
      },
      "[cosine_embedding_loss]");
}

}  // namespace
}  // namespace lockstep
