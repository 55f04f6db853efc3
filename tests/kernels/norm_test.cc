#include "core/ops/norm/norm.h"

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

/// Compares a fused norm with its reference: the result and the gradients of all inputs.
void expect_agrees(const std::function<Tensor(TensorList)>& fused,
                   const std::function<Tensor(TensorList)>& reference,
                   const std::vector<Tensor>& inputs, double tolerance) {
  const Tensor got = fused(inputs);
  const Tensor wanted = reference(inputs);
  expect_near(got, wanted, tolerance, tolerance);
  const Tensor weights = random_tensor(got.sizes(), got.dtype(), 99);
  const std::vector<Tensor> got_grads = grad({got}, inputs, {weights});
  const std::vector<Tensor> wanted_grads = grad({wanted}, inputs, {weights});
  for (size_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE("gradient " + std::to_string(i));
    expect_near(got_grads[i], wanted_grads[i], 10 * tolerance, 10 * tolerance);
  }
}

TEST(Norm, LayerNormAgreesWithItsReference) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const int64_t width : {1, 5, 8, 33, 384, 9000}) {
      SCOPED_TRACE(width);
      expect_agrees([&](TensorList t) { return layer_norm(t[0], {width}, t[1], t[2]); },
                    [&](TensorList t) { return layer_norm_reference(t[0], {width}, t[1], t[2]); },
                    {leaf({37, width}, 1, dtype), leaf({width}, 2, dtype), leaf({width}, 3, dtype)},
                    dtype == DType::kF32 ? 1e-5 : 1e-12);
    }
  }
}

TEST(Norm, RmsNormAgreesWithItsReference) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const int64_t width : {1, 5, 33, 384, 9000}) {
      SCOPED_TRACE(width);
      expect_agrees([&](TensorList t) { return rms_norm(t[0], {width}, t[1], 1e-6); },
                    [&](TensorList t) { return rms_norm_reference(t[0], {width}, t[1], 1e-6); },
                    {leaf({37, width}, 1, dtype), leaf({width}, 2, dtype)},
                    dtype == DType::kF32 ? 1e-5 : 1e-12);
    }
  }
}

TEST(Norm, NormalisesSeveralDimensionsAndStridedInput) {
  const Tensor x = random_tensor({4, 3, 6}).transpose(0, 2);
  expect_near(layer_norm(x, {3, 4}), layer_norm_reference(x, {3, 4}), 1e-5, 1e-5);
  expect_near(rms_norm(x, {3, 4}), rms_norm_reference(x, {3, 4}), 1e-5, 1e-5);
  const auto [out, mean, rstd] = native_layer_norm(x, {3, 4}, {}, {}, 1e-5);
  EXPECT_EQ(mean.shape(), "[6, 1, 1]");
  EXPECT_EQ(rstd.shape(), "[6, 1, 1]");
}

TEST(Norm, WeightAndBiasAreEachOptional) {
  const Tensor weight = random_tensor({8}, DType::kF32, 2),
               bias = random_tensor({8}, DType::kF32, 3);
  const Tensor x = random_tensor({5, 8});
  expect_near(layer_norm(x, {8}, weight), layer_norm_reference(x, {8}, weight), 1e-5, 1e-5);
  expect_near(layer_norm(x, {8}, {}, bias), layer_norm_reference(x, {8}, {}, bias), 1e-5, 1e-5);
  expect_near(layer_norm(x, {8}), layer_norm_reference(x, {8}), 1e-5, 1e-5);
}

TEST(Norm, EachGradientIsTheSameWhicheverOthersAreWanted) {
  // So many rows that the gradients of parameters are summed in blocks.
  const std::vector<Tensor> values = {random_tensor({70, 40}, DType::kF32, 1),
                                      random_tensor({40}, DType::kF32, 2),
                                      random_tensor({40}, DType::kF32, 3)};
  const Tensor of_result = random_tensor({70, 40}, DType::kF32, 4);
  const auto gradients = [&](int wanted) {
    std::vector<Tensor> inputs;
    for (int i = 0; i < 3; ++i) {
      inputs.push_back(values[static_cast<size_t>(i)].clone());
      if ((wanted >> i & 1) != 0) inputs.back().set_requires_grad();
    }
    mul(layer_norm(inputs[0], {40}, inputs[1], inputs[2]), of_result).sum().backward();
    return std::vector<Tensor>{inputs[0].grad(), inputs[1].grad(), inputs[2].grad()};
  };
  const std::vector<Tensor> all = gradients(7);
  for (int wanted = 1; wanted < 7; ++wanted) {
    const std::vector<Tensor> got = gradients(wanted);
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(got[i].defined(), (wanted >> i & 1) != 0);
      EXPECT_TRUE(!got[i].defined() || equal(got[i], all[i])) << wanted << " " << i;
    }
  }
}

TEST(Norm, HalvesAreComputedInF32) {
  const Tensor x = random_tensor({9, 64}, DType::kBF16),
               weight = random_tensor({64}, DType::kBF16, 2);
  const auto [out, mean, rstd] = native_layer_norm(x, {64}, weight, {}, 1e-5);
  EXPECT_EQ(out.dtype(), DType::kBF16);
  const Tensor wanted = layer_norm_reference(x.to(DType::kF32), {64}, weight.to(DType::kF32));
  expect_near(out, wanted, 0x1p-8, 0x1p-8);
}

TEST(Norm, StatisticsOfHalvesAreHalvesUnlessAParameterIsWider) {
  const Tensor x = random_tensor({9, 64}, DType::kBF16),
               g = random_tensor({9, 64}, DType::kBF16, 2);
  const Tensor weight = random_tensor({64}, DType::kF32, 3), narrow = weight.to(DType::kBF16);
  const auto [out, mean, rstd] = native_layer_norm(x, {64}, narrow, {}, 1e-5);
  const auto [mixed_out, mixed_mean, mixed_rstd] = native_layer_norm(x, {64}, {}, weight, 1e-5);
  EXPECT_EQ(mean.dtype(), DType::kBF16);
  EXPECT_EQ(rstd.dtype(), DType::kBF16);
  EXPECT_EQ(mixed_mean.dtype(), DType::kF32);
  EXPECT_EQ(mixed_rstd.dtype(), DType::kF32);
  EXPECT_EQ(values(mean), values(mixed_mean.to(DType::kBF16)));
  EXPECT_EQ(values(rstd), values(mixed_rstd.to(DType::kBF16)));
  // Backward accepts statistics of either dtype.
  const BoolList all{true, true, false};
  const auto [dx, dw, db] = native_layer_norm_backward(g, x, {64}, mean, rstd, narrow, {}, all);
  const auto [wide_dx, wide_dw, wide_db] = native_layer_norm_backward(
      g, x, {64}, mean.to(DType::kF32), rstd.to(DType::kF32), narrow, {}, all);
  EXPECT_EQ(values(dx), values(wide_dx));
  EXPECT_EQ(values(dw), values(wide_dw));
}

TEST(Norm, AnOffsetFarFromZeroCostsNoDigits) {
  const Tensor x = random_tensor({4, 512}, DType::kF64);
  const Tensor moved = (x + 1000.0).to(DType::kF32);
  expect_near(layer_norm(moved, {512}), layer_norm_reference(moved.to(DType::kF64), {512}), 2e-4,
              0);
}

TEST(Norm, EmptyInputsGiveEmptyResultsAndZeroGradients) {
  const Tensor x = zeros({0, 3}).set_requires_grad();
  const Tensor weight = ones({3}).set_requires_grad();
  const Tensor out = layer_norm(x, {3}, weight);
  EXPECT_EQ(out.shape(), "[0, 3]");
  const std::vector<Tensor> grads = grad({out}, {x, weight}, {zeros({0, 3})});
  EXPECT_EQ(values(grads[1]), (std::vector<double>{0, 0, 0}));
}

TEST(Norm, OutputMaskLeavesResultsOut) {
  const Tensor x = random_tensor({5, 8}), weight = ones({8});
  const auto [out, mean, rstd] = native_layer_norm(x, {8}, weight, weight, 1e-5);
  const auto [dx, dw, db] =
      native_layer_norm_backward(x, x, {8}, mean, rstd, weight, weight, {false, true, false});
  EXPECT_FALSE(dx.defined());
  EXPECT_TRUE(dw.defined());
  EXPECT_FALSE(db.defined());
}

TEST(Norm, BitsDoNotDependOnThreads) {
  const Tensor x = random_tensor({1000, 96}), g = random_tensor({1000, 96}, DType::kF32, 2);
  const Tensor weight = random_tensor({96}, DType::kF32, 3);
  expect_same_bits_for_any_threads([&] {
    const auto [out, mean, rstd] = native_layer_norm(x, {96}, weight, weight, 1e-5);
    const auto [dx, dw, db] =
        native_layer_norm_backward(g, x, {96}, mean, rstd, weight, weight, {true, true, true});
    const auto [rms, scale] = fused_rms_norm(x, {96}, weight, 1e-5);
    const auto [rms_dx, rms_dw] = fused_rms_norm_backward(g, x, {96}, scale, weight, {true, true});
    return std::vector<Tensor>{out, mean, rstd, dx, dw, db, rms, rms_dx, rms_dw};
  });
}

TEST(Norm, FirstAndSecondDerivativesAgreeWithDifferences) {
  const std::vector<Tensor> inputs{leaf({3, 4}, 1), leaf({4}, 2), leaf({4}, 3)};
  const TensorFunction layer = [](TensorList t) { return layer_norm(t[0], {4}, t[1], t[2]); };
  EXPECT_TRUE(gradcheck(layer, inputs));
  EXPECT_TRUE(gradgradcheck(layer, inputs));
  const TensorFunction rms = [](TensorList t) { return rms_norm(t[0], {4}, t[1], 0.1); };
  EXPECT_TRUE(gradcheck(rms, {inputs[0], inputs[1]}));
  EXPECT_TRUE(gradgradcheck(rms, {inputs[0], inputs[1]}));
  const TensorFunction plain = [](TensorList t) { return layer_norm(t[0], {4}); };
  EXPECT_TRUE(gradgradcheck(plain, {inputs[0]}));
}

TEST(Norm, MistakesAreNamed) {
  const Tensor x = zeros({2, 3});
  expect_error<ShapeError>([&] { layer_norm(x, {2}); }, "[layer_norm]", "[2, 3]", "[2]");
  expect_error<ShapeError>([&] { layer_norm(x, {}); }, "[layer_norm]");
  expect_error<ShapeError>([&] { rms_norm(x, {3}, ones({2})); }, "[rms_norm]", "weight", "[3]",
                           "[2]");
  expect_error<DTypeError>([&] { layer_norm(x.to(DType::kI64), {3}); }, "[layer_norm]", "int64");
}

TEST(GroupNorm, StatisticsOfHalvesAreHalvesWhereNoParameterIsWider) {
  const Tensor x = random_tensor({2, 4, 5}, DType::kBF16), half = random_tensor({4}, DType::kBF16);
  const Tensor wide = random_tensor({4});
  const auto statistics = [&](OptionalTensor weight, OptionalTensor bias) {
    const auto [out, mean, rstd] = native_group_norm(x, weight, bias, 2, 4, 5, 2, 1e-5);
    EXPECT_EQ(out.dtype(), DType::kBF16);
    EXPECT_EQ(mean.dtype(), rstd.dtype());
    return mean.dtype();
  };
  EXPECT_EQ(statistics({}, {}), DType::kBF16);
  EXPECT_EQ(statistics(half, half), DType::kBF16);
  EXPECT_EQ(statistics(wide, {}), DType::kF32);
  EXPECT_EQ(statistics({}, wide), DType::kF32);
  const auto [out, mean, rstd] = fused_group_norm(x, half, half, 2, 4, 5, 2, 1e-5);
  EXPECT_EQ(mean.dtype(), DType::kF32);
}

}  // namespace
}  // namespace lockstep
