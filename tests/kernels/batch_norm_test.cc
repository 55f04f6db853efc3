#include "core/ops/norm/batch_norm.h"

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "core/dispatch/dispatcher.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

constexpr double kEps = 1e-5;

// Shapes with few and with many positions per channel, and rows: kernels read these differently.
const Dims kShapes[] = {{37, 5},       {64, 33},        {6, 4, 3},      {5, 7, 8},
                        {9, 17, 4, 5}, {3, 20, 16, 17}, {2, 3, 4, 5, 6}};

TEST(BatchNorm, TrainingAgreesWithItsReference) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const double tolerance = dtype == DType::kF32 ? 2e-5 : 1e-11;
    for (const Dims& shape : kShapes) {
      SCOPED_TRACE(to_string(shape));
      const Tensor x = leaf(shape, 1, dtype), w = leaf({shape[1]}, 2, dtype),
                   b = leaf({shape[1]}, 3, dtype);
      const Tensor got = batch_norm(x, w, b, {}, {}, true);
      const Tensor want = batch_norm_reference(x, w, b);
      expect_near(got, want, tolerance, tolerance);
      const Tensor weights = random_tensor(shape, dtype, 4);
      const std::vector<Tensor> grads = grad({got}, {x, w, b}, {weights});
      const std::vector<Tensor> wanted = grad({want}, {x, w, b}, {weights});
      for (size_t i = 0; i < grads.size(); ++i) {
        expect_near(grads[i], wanted[i], 20 * tolerance, 10 * tolerance);
      }
    }
  }
}

TEST(BatchNorm, RunningStatisticsFollowTheBatchOnlyInTraining) {
  const Tensor x = random_tensor({6, 3, 4}, DType::kF64) * 2.0 + 1.0;
  const Tensor mean = random_tensor({3}, DType::kF64, 2);
  const Tensor var = ones({3}, DType::kF64);
  const std::vector<double> mean_before = values(mean), var_before = values(var);
  batch_norm(x, {}, {}, mean, var, false);
  EXPECT_EQ(values(mean), mean_before);
  EXPECT_EQ(values(var), var_before);

  const uint32_t version = mean.version();
  batch_norm(x, {}, {}, mean, var, true, 0.25);
  EXPECT_GT(mean.version(), version);
  const Dims others{0, 2};
  const Tensor batch_mean = x.mean(others);
  const Tensor unbiased = square(x - x.mean(others, true)).sum(others) / 23.0;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(values(mean)[i], 0.75 * mean_before[i] + 0.25 * values(batch_mean)[i], 1e-14);
    EXPECT_NEAR(values(var)[i], 0.75 * var_before[i] + 0.25 * values(unbiased)[i], 1e-14);
  }
}

TEST(BatchNorm, EveryTrainingFormWritesTheSameRunningStatistics) {
  const Tensor x = random_tensor({4, 3, 5});
  std::vector<std::vector<double>> found;
  for (const char* name : {"_native_batch_norm_legit", "native_batch_norm", "batch_norm"}) {
    const Tensor mean = zeros({3}), var = ones({3});
    std::vector<Value> arguments{x, Value(), Value(), mean, var, true, 0.1, kEps};
    if (std::string(name) == "batch_norm") arguments.emplace_back(true);
    Stack stack(arguments);
    dispatcher().find(name).call_boxed(stack);
    found.push_back(values(mean));
    found.push_back(values(var));
    EXPECT_NE(found.back(), std::vector<double>(3, 1.0)) << name;
  }
  EXPECT_EQ(found[0], found[2]);
  EXPECT_EQ(found[0], found[4]);
  EXPECT_EQ(found[1], found[3]);
  EXPECT_EQ(found[1], found[5]);
}

TEST(BatchNorm, UsesRunningStatisticsOutsideTraining) {
  const Tensor x = leaf({4, 3, 5}, 1), w = leaf({3}, 2), b = leaf({3}, 3);
  const Tensor mean = random_tensor({3}, DType::kF64, 4);
  const Tensor var = exp(random_tensor({3}, DType::kF64, 5));
  const auto along = [](const Tensor& t) { return t.view({1, 3, 1}); };
  const Tensor want = (x - along(mean)) * rsqrt(along(var) + kEps) * along(w) + along(b);
  const auto [got, save_mean, save_invstd] =
      native_batch_norm(x, w, b, mean, var, false, 0.1, kEps);
  expect_near(got, want, 1e-13, 1e-13);
  EXPECT_EQ(save_mean.shape(), "[0]");
  EXPECT_EQ(save_invstd.shape(), "[0]");
  const Tensor weights = random_tensor({4, 3, 5}, DType::kF64, 6);
  const std::vector<Tensor> grads = grad({got}, {x, w, b}, {weights});
  const std::vector<Tensor> wanted = grad({want}, {x, w, b}, {weights});
  for (size_t i = 0; i < grads.size(); ++i) expect_near(grads[i], wanted[i], 1e-12, 1e-12);
}

TEST(BatchNorm, BackwardWorksAfterRunningStatisticsMovedOn) {
  const Tensor weights = random_tensor({4, 3, 5}, DType::kF32, 2);
  const auto gradient = [&](bool moves_on) {
    const Tensor x = leaf({4, 3, 5}, 1, DType::kF32);
    const Tensor mean = zeros({3}), var = ones({3});
    const Tensor out = batch_norm(x, {}, {}, mean, var, true);
    const std::vector<double> after_one = values(mean);
    if (moves_on) {
      batch_norm(x * 3 + 1, {}, {}, mean, var, true);
      EXPECT_NE(values(mean), after_one);
    }
    sum(out * weights).backward();
    return x.grad();
  };
  const Tensor wanted = gradient(/*moves_on=*/false);
  EXPECT_GT(max(abs(wanted)).item<float>(), 0.1F);
  expect_near(gradient(/*moves_on=*/true), wanted, 0, 0);
}

TEST(BatchNorm, HalvesKeepTheirDtypeAndF32Statistics) {
  for (const Dims& shape : kShapes) {
    const Tensor x = random_tensor(shape, DType::kBF16), w = random_tensor({shape[1]});
    const auto [out, mean, rstd] = native_batch_norm(x, w, {}, {}, {}, true, 0.1, kEps);
    EXPECT_EQ(out.dtype(), DType::kBF16);
    EXPECT_EQ(mean.dtype(), DType::kF32);
    expect_near(out, batch_norm_reference(x.to(DType::kF64), w.to(DType::kF64)), 0x1p-8, 0x1p-8);
    const auto [dx, dw, db] =
        native_batch_norm_backward(x, x, w, {}, {}, mean, rstd, true, kEps, {true, true, true});
    EXPECT_EQ(dx.dtype(), DType::kBF16);
    EXPECT_EQ(dw.dtype(), DType::kF32);
  }
}

TEST(BatchNorm, StatisticsOfHalvesAreHalvesWhereNoParameterIsWider) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const Tensor x = random_tensor({4, 3, 5}, dtype), w = random_tensor({3}, dtype);
    const Tensor f32 = random_tensor({3});
    EXPECT_EQ(std::get<1>(native_batch_norm(x, {}, {}, {}, {}, true, 0.1, kEps)).dtype(), dtype);
    EXPECT_EQ(std::get<1>(native_batch_norm(x, w, w, w, square(w), true, 0.1, kEps)).dtype(),
              dtype);
    EXPECT_EQ(std::get<2>(native_batch_norm(x, {}, {}, w, square(w), false, 0.1, kEps)).dtype(),
              dtype);
    EXPECT_EQ(std::get<2>(native_batch_norm(x, {}, f32, {}, {}, true, 0.1, kEps)).dtype(),
              DType::kF32);
    // Backward uses f32 statistics in any case.
    const Tensor leaf = x.clone().set_requires_grad();
    const Tensor out = std::get<0>(native_batch_norm(leaf, {}, {}, {}, {}, true, 0.1, kEps));
    const auto [unused, mean, rstd, none, nothing] = fused_batch_norm(x, {}, {}, {}, {}, 0.1, kEps);
    const Tensor g = random_tensor({4, 3, 5}, dtype, 3);
    EXPECT_TRUE(equal(grad({out}, {leaf}, {g})[0],
                      std::get<0>(native_batch_norm_backward(g, x, {}, {}, {}, mean, rstd, true,
                                                             kEps, {true, false, false}))));
  }
}

TEST(BatchNorm, AnOffsetFarFromZeroCostsNoDigits) {
  const Tensor x = (random_tensor({16, 3, 64}, DType::kF64) + 1000.0).to(DType::kF32);
  expect_near(batch_norm(x, {}, {}, {}, {}, true), batch_norm_reference(x.to(DType::kF64)), 1e-4,
              0);
}

TEST(BatchNorm, StridedInputGivesTheSameBits) {
  for (const Dims& shape : {Dims{6, 8, 9, 5}, Dims{5, 2, 3, 17}, Dims{3, 2, 5, 4, 100}}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
      const auto turned = [&](uint64_t seed) {
        const Tensor last = random_tensor(shape, dtype, seed);
        return last.dim() == 4 ? last.permute({0, 3, 1, 2}) : last.permute({0, 4, 1, 2, 3});
      };
      const Tensor x = turned(1), g = turned(2);
      const Tensor w = random_tensor({x.size(1)}),
                   mean = random_tensor({x.size(1)}, DType::kF32, 3);
      const auto all = [&](const Tensor& input, const Tensor& grad) {
        const auto [out, save_mean, rstd] =
            native_batch_norm(input, w, mean, {}, {}, true, 0.1, kEps);
        const auto [dx, dw, db] = native_batch_norm_backward(grad, input, w, {}, {}, save_mean,
                                                             rstd, true, kEps, {true, true, true});
        const auto [fixed, none, nothing] =
            native_batch_norm(input, {}, w, mean, square(mean), false, 0.1, kEps);
        return std::vector<Tensor>{out, save_mean, rstd, dx, dw, db, fixed};
      };
      const std::vector<Tensor> got = all(x, g), want = all(x.contiguous(), g.contiguous());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(equal(got[i], want[i])) << i;
    }
  }
}

TEST(BatchNorm, TakesVectorsOfAnyStride) {
  const Tensor x = random_tensor({4, 3, 5}), w = random_tensor({3}), wide = random_tensor({3, 2});
  const Tensor b = wide.select(1, 0);
  EXPECT_TRUE(equal(batch_norm(x, w, b, b, square(wide).select(1, 1), false),
                    batch_norm(x, w, b.contiguous(), b.contiguous(),
                               square(wide).select(1, 1).contiguous(), false)));
}

TEST(BatchNorm, EmptyInputsLeaveRunningStatisticsAlone) {
  const Tensor x = zeros({0, 3, 4}).set_requires_grad();
  const Tensor w = ones({3}).set_requires_grad();
  const Tensor mean = ones({3}), var = ones({3});
  const Tensor out = batch_norm(x, w, {}, mean, var, true);
  EXPECT_EQ(out.shape(), "[0, 3, 4]");
  EXPECT_EQ(values(mean), std::vector<double>(3, 1.0));
  EXPECT_EQ(values(var), std::vector<double>(3, 1.0));
  const std::vector<Tensor> grads = grad({out}, {x, w}, {zeros({0, 3, 4})});
  EXPECT_EQ(values(grads[1]), std::vector<double>(3, 0.0));
}

TEST(BatchNorm, BitsDoNotDependOnThreads) {
  for (const Dims& shape : {Dims{64, 100, 7, 9}, Dims{500, 131}, Dims{100, 67, 5}}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
      // Includes f64 images in channels-last format.
      const auto format = dtype == DType::kF64 && shape.size() == 4 ? MemoryFormat::kChannelsLast
                                                                    : MemoryFormat::kContiguous;
      const Tensor x = clone(random_tensor(shape, dtype), format);
      const Tensor g = clone(random_tensor(shape, dtype, 2), format);
      const Tensor w = random_tensor({shape[1]}, DType::kF32, 3);
      expect_same_bits_for_any_threads([&] {
        const Tensor mean = zeros({shape[1]}), var = ones({shape[1]});
        const auto [out, save_mean, rstd] = native_batch_norm(x, w, w, mean, var, true, 0.1, kEps);
        const auto [dx, dw, db] = native_batch_norm_backward(g, x, w, {}, {}, save_mean, rstd, true,
                                                             kEps, {true, true, true});
        return std::vector<Tensor>{out, save_mean, rstd, mean, var, dx, dw, db};
      });
    }
  }
}

TEST(BatchNorm, FirstAndSecondDerivativesAgreeWithDifferences) {
  const std::vector<Tensor> inputs{leaf({4, 2, 3}, 1), leaf({2}, 2), leaf({2}, 3)};
  const TensorFunction training = [](TensorList t) {
    return batch_norm(t[0], t[1], t[2], {}, {}, true);
  };
  EXPECT_TRUE(gradcheck(training, inputs));
  EXPECT_TRUE(gradgradcheck(training, inputs));
  const Tensor mean = random_tensor({2}, DType::kF64, 4), var = ones({2}, DType::kF64);
  const TensorFunction running = [&](TensorList t) {
    return batch_norm(t[0], t[1], t[2], mean, var, false);
  };
  EXPECT_TRUE(gradcheck(running, inputs));
  EXPECT_TRUE(gradgradcheck(running, inputs));
}

TEST(BatchNorm, MistakesAreNamed) {
  const Tensor x = zeros({2, 3, 4});
  expect_error<ShapeError>([&] { batch_norm(zeros({3}), {}, {}, {}, {}, true); }, "[batch_norm]",
                           "[3]");
  expect_error<ShapeError>([&] { batch_norm(x, ones({2}), {}, {}, {}, true); }, "weight", "[3]",
                           "[2]");
  expect_error<ShapeError>([&] { batch_norm(x, {}, {}, zeros({3}), {}, true); },
                           "both running mean and variance");
  expect_error<ShapeError>([&] { batch_norm(x, {}, {}, {}, {}, false); }, "without training");
  expect_error<DTypeError>([&] { batch_norm(x.to(DType::kI64), {}, {}, {}, {}, true); }, "int64");
}

}  // namespace
}  // namespace lockstep
