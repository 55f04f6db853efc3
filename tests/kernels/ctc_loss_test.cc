#include "core/ops/loss/ctc_loss.h"

#include <vector>

#include "autograd/gradcheck.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

using Classes = std::vector<int64_t>;

/// What the classes of the steps spell: runs merged, then blanks removed.
Classes spelled(const Classes& steps, int64_t blank) {
  Classes result;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] != blank && (i == 0 || steps[i] != steps[i - 1])) result.push_back(steps[i]);
  }
  return result;
}

/// The loss by its definition: minus the logarithm of the sum over all sequences of classes.
double loss_of_all_paths(const Tensor& log_probs, const Classes& target, int64_t blank) {
  const int64_t steps = log_probs.size(0), classes = log_probs.size(1);
  const Numbers p = values(log_probs);
  double probability = 0;
  Classes path(static_cast<size_t>(steps), 0);
  while (true) {
    double sum = 0;
    for (int64_t t = 0; t < steps; ++t) {
      sum += p[static_cast<size_t>(t * classes + path[static_cast<size_t>(t)])];
    }
    if (spelled(path, blank) == target) probability += std::exp(sum);
    size_t at = 0;
    while (at < path.size() && ++path[at] == classes) path[at++] = 0;
    if (at == path.size()) return -std::log(probability);
  }
}

Tensor targets_of(const Classes& classes) {
  return tensor_from(classes, {static_cast<int64_t>(classes.size())});
}

TEST(CtcLoss, IsTheSumOverAllPaths) {
  const Tensor log_probs = log_softmax(random_tensor({5, 3}, DType::kF64), 1);
  for (const Classes& target : {Classes{}, Classes{1}, Classes{1, 2}, Classes{2, 2},
                                Classes{1, 1, 2}, Classes{2, 1, 2, 1, 2}}) {
    const Tensor loss = ctc_loss(log_probs, targets_of(target), Dims{5},
                                 Dims{static_cast<int64_t>(target.size())}, 0, Reduction::kSum);
    EXPECT_NEAR(loss.item<double>(), loss_of_all_paths(log_probs, target, 0), 1e-12);
  }
  const Tensor other =
      ctc_loss(log_probs, targets_of({0, 1}), Dims{5}, Dims{2}, 2, Reduction::kSum);
  EXPECT_NEAR(other.item<double>(), loss_of_all_paths(log_probs, {0, 1}, 2), 1e-12);
}

TEST(CtcLoss, CutsSequencesAndTargetsByTheirLengths) {
  const Tensor log_probs = log_softmax(random_tensor({5, 2, 3}, DType::kF64), 2);
  const Tensor padded = tensor_from({int64_t{1}, int64_t{2}, int64_t{2}, int64_t{99}}, {2, 2});
  const Tensor losses = ctc_loss(log_probs, padded, Dims{5, 3}, Dims{2, 1}, 0, Reduction::kNone);
  const Tensor second = log_probs.select(1, 1).slice(0, 0, 3);
  const double a = loss_of_all_paths(log_probs.select(1, 0), {1, 2}, 0);
  const double b = loss_of_all_paths(second, {2}, 0);
  expect_near(losses, tensor_from({a, b}, {2}), 1e-12, 0);
  const Tensor joined = targets_of({1, 2, 2});
  expect_near(ctc_loss(log_probs, joined, Dims{5, 3}, Dims{2, 1}, 0, Reduction::kNone), losses, 0,
              0);
  EXPECT_NEAR(ctc_loss(log_probs, joined, Dims{5, 3}, Dims{2, 1}).item<double>(), (a / 2 + b) / 2,
              1e-12);
}

TEST(CtcLoss, OfATargetThatCannotBeSpelledIsInfiniteOrIgnored) {
  const Tensor scores = leaf({2, 1, 3});
  const Tensor target = targets_of({1, 1});  // needs a blank between
  const auto loss = [&](bool zero) {
    return ctc_loss(log_softmax(scores, 2), target, Dims{2}, Dims{2}, 0, Reduction::kSum, zero);
  };
  EXPECT_EQ(loss(false).item<double>(), kInfinity);
  const Tensor ignored = loss(true);
  EXPECT_EQ(ignored.item<double>(), 0);
  ignored.backward();
  expect_near(scores.grad(), zeros({2, 1, 3}, DType::kF64), 0, 0);
}

TEST(CtcLoss, HasTheGradientOfItsScores) {
  const Tensor targets = targets_of({1, 2, 2, 1});
  EXPECT_TRUE(gradcheck(
      [&](TensorList inputs) {
        return std::vector<Tensor>{ctc_loss(log_softmax(inputs[0], 2), targets, Dims{5, 4, 0},
                                            Dims{2, 2, 0}, 0, Reduction::kNone)};
      },
      {leaf({5, 3, 3})}));
}

TEST(CtcLoss, RefusesLengthsAndClassesThatDoNotFit) {
  const Tensor log_probs = log_softmax(random_tensor({4, 1, 3}), 2);
  expect_error<IndexError>([&] { ctc_loss(log_probs, targets_of({3}), Dims{4}, Dims{1}); },
                           "[ctc_loss]", "[0, 3)");
  expect_error<ShapeError>([&] { ctc_loss(log_probs, targets_of({1}), Dims{5}, Dims{1}); },
                           "input_lengths");
  expect_error<ShapeError>(
      [&] {
        ctc_loss(log_probs, targets_of({1, 2}), Dims{4}, Dims{1});
      },
      "target_lengths");
  expect_error<IndexError>([&] { ctc_loss(log_probs, targets_of({1}), Dims{4}, Dims{1}, 3); },
                           "blank");
}

}  // namespace
}  // namespace lockstep
