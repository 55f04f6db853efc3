#include "core/ops/loss/loss.h"

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "core/ops/factory/copy.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

/// Class indices below `classes`.
Tensor targets(IntList sizes, int64_t classes) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count_elements(sizes); ++i) numbers.push_back((i * 7 + i / 3) % classes);
  return tensor_from<int64_t>(numbers, sizes);
}

TEST(Softmax, AgreesWithItsFormulaAlongAnyDimension) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const double tolerance = dtype == DType::kF32 ? 1e-6 : 1e-14;
    for (const Dims& sizes : {Dims{7}, Dims{3, 1000}, Dims{4, 9, 5}, Dims{2, 6, 300}}) {
      const Tensor x = random_tensor(sizes, dtype);
      for (int64_t dim = 0; dim < x.dim(); ++dim) {
        const Tensor e = exp(x.to(DType::kF64));
        const Tensor wanted = e / sum(e, {dim}, true);
        expect_near(softmax(x, dim), wanted, tolerance, 4 * tolerance);
        expect_near(log_softmax(x, dim), log(wanted), tolerance, 4 * tolerance);
      }
    }
  }
}

TEST(Softmax, LargeAndInfiniteScoresDoNotOverflow) {
  const Tensor x = tensor_from<float>({1000, 1001, static_cast<float>(-kInfinity)}, {3});
  const Tensor y = softmax(x, 0);
  EXPECT_NEAR(values(y)[1], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_EQ(values(y)[2], 0);
  EXPECT_EQ(values(log_softmax(x, 0))[2], -kInfinity);
  const Tensor masked = full({4}, -kInfinity);
  EXPECT_TRUE(std::isnan(values(softmax(masked, 0))[0]));
}

TEST(Softmax, DTypeArgumentCastsFirstAndIntegersBecomeF32) {
  EXPECT_EQ(softmax(arange(3), 0).dtype(), DType::kF32);
  EXPECT_EQ(softmax(arange(3), 0, DType::kF64).dtype(), DType::kF64);
  EXPECT_EQ(softmax(random_tensor({3}, DType::kBF16), 0).dtype(), DType::kBF16);
  EXPECT_EQ(softmax(full({}, 3.0), 0).item<float>(), 1.0F);
  EXPECT_EQ(softmax(zeros({2, 0}), 1).numel(), 0);
}

TEST(Softmax, DerivativesAgreeWithDifferences) {
  const std::vector<Tensor> inputs{leaf({3, 4})};
  for (const int64_t dim : {0, 1}) {
    const TensorFunction plain = [dim](TensorList t) { return softmax(t[0], dim); };
    const TensorFunction log = [dim](TensorList t) { return log_softmax(t[0], dim); };
    EXPECT_TRUE(gradcheck(plain, inputs));
    EXPECT_TRUE(gradgradcheck(plain, inputs));
    EXPECT_TRUE(gradcheck(log, inputs));
    EXPECT_TRUE(gradgradcheck(log, inputs));
  }
}

TEST(CrossEntropy, FusedAgreesWithItsReferenceForEveryReduction) {
  for (const Reduction reduction : {Reduction::kNone, Reduction::kMean, Reduction::kSum}) {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      const Tensor x = leaf({40, 3000}, 1, dtype);
      const Tensor target = targets({40}, 3000);
      const Tensor got = cross_entropy_loss(x, target, {}, reduction, 7);
      const Tensor wanted = cross_entropy_loss_reference(x, target, {}, reduction, 7);
      const double tolerance = dtype == DType::kF32 ? 2e-6 : 1e-13;
      expect_near(got, wanted, tolerance, tolerance);
      const Tensor weights = random_tensor(got.sizes(), dtype, 5);
      expect_near(grad({got}, {x}, {weights})[0], grad({wanted}, {x}, {weights})[0], tolerance,
                  10 * tolerance);
    }
  }
}

TEST(CrossEntropy, IgnoredTargetsCountNothing) {
  const Tensor x = leaf({3, 5});
  const Tensor target = tensor_from<int64_t>({1, -100, 4}, {3});
  const Tensor loss = cross_entropy_loss(x, target);
  const Tensor wanted = cross_entropy_loss(index_select(x, 0, tensor_from<int64_t>({0, 2}, {2})),
                                           tensor_from<int64_t>({1, 4}, {2}));
  EXPECT_NEAR(loss.item<double>(), wanted.item<double>(), 1e-14);
  loss.backward();
  EXPECT_EQ(values(x.grad().select(0, 1)), (std::vector<double>(5, 0)));
  EXPECT_TRUE(
      std::isnan(cross_entropy_loss(x.detach(), full({3}, -100, {DType::kI64})).item<double>()));
}

TEST(CrossEntropy, TakesEveryIntegerTargetAndMoreDimensions) {
  const Tensor x = random_tensor({2, 5, 3, 4}, DType::kF64);
  const Tensor target = targets({2, 3, 4}, 5);
  const Tensor wanted = cross_entropy_loss_reference(x, target, {}, Reduction::kNone);
  EXPECT_EQ(wanted.shape(), "[2, 3, 4]");
  for (const DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
    expect_near(cross_entropy_loss(x, target.to(dtype), {}, Reduction::kNone), wanted, 1e-13, 0);
  }
  const Tensor one = random_tensor({5}, DType::kF64);
  expect_near(cross_entropy_loss(one, full({}, 2, {DType::kI64})),
              -log_softmax(one, 0).select(0, 2), 1e-13, 0);
}

TEST(CrossEntropy, WeightsAndSmoothingFollowTheirFormula) {
  const Tensor x = random_tensor({6, 4}, DType::kF64);
  const Tensor target = tensor_from<int64_t>({0, 3, 1, -100, 2, 3}, {6});
  const Tensor weight = tensor_from<double>({0.5, 2, 1, 3}, {4});
  const std::vector<double> logs = values(log_softmax(x, 1));
  double loss = 0, total = 0;
  for (int64_t i = 0; i < 6; ++i) {
    const int64_t chosen = target.data<int64_t>()[i];
    if (chosen < 0) continue;
    const std::vector<double> w = values(weight);
    total += w[static_cast<size_t>(chosen)];
    loss -= 0.9 * w[static_cast<size_t>(chosen)] * logs[static_cast<size_t>(i * 4 + chosen)];
    for (size_t k = 0; k < 4; ++k) loss -= 0.1 / 4 * w[k] * logs[static_cast<size_t>(i) * 4 + k];
  }
  const Tensor got = cross_entropy_loss(x, target, weight, Reduction::kMean, -100, 0.1);
  EXPECT_NEAR(got.item<double>(), loss / total, 1e-13);
}

TEST(CrossEntropy, ProbabilitiesThatNameOneClassGiveItsLoss) {
  const Tensor x = random_tensor({2, 3}, DType::kF64);
  const Tensor certain = tensor_from<double>({0, 1, 0, 0, 0, 1}, {2, 3});
  const Tensor target = tensor_from<int64_t>({1, 2}, {2});
  for (const double smoothing : {0.0, 0.2}) {
    expect_near(cross_entropy_loss(x, certain, {}, Reduction::kMean, -100, smoothing),
                cross_entropy_loss(x, target, {}, Reduction::kMean, -100, smoothing), 1e-14, 0);
  }
}

TEST(CrossEntropy, DerivativesAgreeWithDifferences) {
  const Tensor target = tensor_from<int64_t>({2, -100, 0}, {3});
  for (const Reduction reduction : {Reduction::kNone, Reduction::kMean, Reduction::kSum}) {
    const TensorFunction fused = [&](TensorList t) {
      return cross_entropy_loss(t[0], target, {}, reduction);
    };
    const TensorFunction plain = [&](TensorList t) {
      return cross_entropy_loss_reference(t[0], target, {}, reduction);
    };
    EXPECT_TRUE(gradcheck(fused, {leaf({3, 4})}));
    EXPECT_TRUE(gradgradcheck(fused, {leaf({3, 4})}));
    EXPECT_TRUE(gradgradcheck(plain, {leaf({3, 4})}));
  }
}

TEST(CrossEntropy, LogsumexpCarriesAGradientToo) {
  const Tensor target = tensor_from<int64_t>({2, -100, 0}, {3});
  const TensorFunction both = [&](TensorList t) {
    const auto [loss, total] = fused_cross_entropy(t[0], target);
    return loss + sum(square(total));
  };
  EXPECT_TRUE(gradcheck(both, {leaf({3, 4})}));
  EXPECT_TRUE(gradgradcheck(both, {leaf({3, 4})}));
}

TEST(CrossEntropy, LossAndLogsumexpOfHalvesAreF32) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const Tensor x = random_tensor({40, 3000}, dtype).set_requires_grad();
    const Tensor wide = x.detach().to(DType::kF32).set_requires_grad();
    const Tensor target = targets({40}, 3000);
    for (const Reduction reduction : {Reduction::kNone, Reduction::kMean, Reduction::kSum}) {
      const auto [loss, total] = fused_cross_entropy(x, target, reduction);
      const auto [wanted, wanted_total] = fused_cross_entropy(wide, target, reduction);
      EXPECT_EQ(loss.dtype(), DType::kF32);
      EXPECT_EQ(total.dtype(), DType::kF32);
      expect_near(loss, wanted, 0, 0);
      expect_near(total, wanted_total, 0, 0);
      const Tensor weights = random_tensor(loss.sizes(), DType::kF32, 5);
      expect_near(grad({loss}, {x}, {weights})[0], grad({wanted}, {wide}, {weights})[0].to(dtype),
                  0, 0);
    }
  }
}

TEST(CrossEntropy, TheGradientMayOverwriteTheLogits) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
    const Tensor x = random_tensor({40, 300}, dtype);
    const Tensor target = targets({40}, 300);
    const auto [loss, total] = fused_cross_entropy(x, target, Reduction::kMean, 7);
    const Tensor one = ones({}, {loss.dtype()});
    const Tensor wanted = fused_cross_entropy_backward(x, one, target, total, Reduction::kMean, 7);
    fused_cross_entropy_backward_(x, one, target, total, Reduction::kMean, 7);
    expect_near(x, wanted, 0, 0);
  }
}

TEST(CrossEntropy, BitsDoNotDependOnThreads) {
  const Tensor x = random_tensor({301, 1000});
  const Tensor target = targets({301}, 1000);
  expect_same_bits_for_any_threads([&] {
    const auto [loss, total] = fused_cross_entropy(x, target);
    const Tensor dx =
        fused_cross_entropy_backward(x, ones({}), target, total, Reduction::kMean, -100);
    return std::vector<Tensor>{loss, total, dx, softmax(x, 1), log_softmax(x, 0)};
  });
}

TEST(NllLoss, OfRowsEachForItselfHasNoTotalWeight) {
  const Tensor x = random_tensor({3, 4});
  const Tensor weight = random_tensor({4});
  const Tensor target = tensor_from<int64_t>({2, -100, 1}, {3});
  const auto total = [&](Reduction reduction) {
    return std::get<1>(nll_loss_forward(x, target, weight, reduction, -100));
  };
  const Tensor sum_of_two = weight.select(0, 2) + weight.select(0, 1);
  expect_near(total(Reduction::kMean), sum_of_two, 1e-6, 1e-6);
  expect_near(total(Reduction::kSum), sum_of_two, 1e-6, 1e-6);
  EXPECT_EQ(total(Reduction::kNone).item<float>(), 0);
}

TEST(CrossEntropy, MistakesAreNamed) {
  const Tensor x = zeros({2, 3});
  expect_error<IndexError>([&] { cross_entropy_loss(x, full({2}, 3, {DType::kI64})); },
                           "[cross_entropy_loss]", "[0, 3)", "got 3", "position 0");
  expect_error<IndexError>([&] { nll_loss(x, full({2}, -1, {DType::kI64})); }, "[nll_loss]",
                           "got -1");
  expect_error<ShapeError>([&] { cross_entropy_loss(x, targets({3}, 3)); }, "[cross_entropy_loss]",
                           "[2]", "[3]");
  expect_error<ShapeError>([&] { nll_loss(x, targets({2}, 3), ones({2})); }, "[nll_loss]", "weight",
                           "[3]");
  expect_error<DTypeError>([&] { softmax_backward_data(x, x.to(DType::kI64), 0, DType::kF32); },
                           "int64");
  expect_error<ShapeError>(
      [&] { cross_entropy_loss(x, targets({2}, 3), {}, Reduction::kMean, -100, 1.5); },
      "label_smoothing", "1.5");
  expect_error<ShapeError>([&] { cross_entropy_loss(x, softmax(x, 1), ones({2})); },
                           "a weight for each of 3 classes", "[2]");
  expect_error<ShapeError>(
      [&] { cross_entropy_loss(x, softmax(x, 1), {}, static_cast<Reduction>(3)); },
      "expected reduction 0", "got 3");
}

TEST(L1Loss, OfIntegersIsOneAndHasNoMean) {
  const Tensor x = tensor_from<int64_t>({1, 2, 5}, {3});
  const Tensor y = tensor_from<int64_t>({4, 2, 1}, {3});
  expect_near(l1_loss(x, y, Reduction::kNone), tensor_from<int64_t>({3, 0, 4}, {3}), 0, 0);
  EXPECT_EQ(l1_loss(x, y, Reduction::kSum).item<int64_t>(), 7);
  expect_error<DTypeError>([&] { l1_loss(x, y, Reduction::kMean); }, "[mean]", "int64");
}

TEST(KlDiv, IntegersAreNoProbabilities) {
  const Tensor x = zeros({3});
  expect_error<DTypeError>([&] { kl_div(x, x.to(DType::kI64)); }, "[kl_div]", "int64");
  expect_error<DTypeError>([&] { kl_div(x.to(DType::kI64), x); }, "[kl_div]", "int64");
}

TEST(RobustLosses, HaveTheSlopeOfTheirTailAtInfinity) {
  for (const bool huber : {true, false}) {
    const Tensor x = tensor_from<double>({kInfinity, -kInfinity, 0.5}, {3}).set_requires_grad();
    const Tensor target = zeros({3}, {DType::kF64});
    const Tensor loss =
        huber ? huber_loss(x, target, Reduction::kSum) : smooth_l1_loss(x, target, Reduction::kSum);
    loss.backward();
    expect_near(x.grad(), tensor_from<double>({1, -1, 0.5}, {3}), 0, 0);
  }
}

}  // namespace
}  // namespace lockstep
