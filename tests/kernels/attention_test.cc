#include "core/ops/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "autograd/autograd.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/device/copies.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {
namespace {

class Attention : public testing::Test {
 protected:
  Tensor random(IntList sizes) {
    Tensor tensor = randn(sizes, {}, &generator_);
    return tensor;
  }
  Generator generator_{17};
};

Tensor math(const Tensor& q, const Tensor& k, const Tensor& v, OptionalTensor mask = {},
            bool causal = false, std::optional<double> scale = std::nullopt, bool gqa = false) {
  return std::get<0>(_scaled_dot_product_attention_math(q, k, v, mask, 0, causal, {}, scale, gqa));
}

void expect_close(const Tensor& got, const Tensor& want, double tolerance = 2e-5) {
  ASSERT_TRUE(same(got.sizes(), want.sizes())) << got.shape() << " " << want.shape();
  EXPECT_LE(max(abs(got - want)).item<float>(), tolerance);
}

TEST_F(Attention, AgreesWithPlainOperatorsOverManyBlocks) {
  for (int64_t rows : {1, 64, 65, 200}) {
    for (int64_t columns : {1, 70, 200}) {
      const Tensor q = random({2, 3, rows, 16});
      const Tensor k = random({2, 3, columns, 16});
      const Tensor v = random({2, 3, columns, 16});
      for (bool causal : {false, true}) {
        expect_close(scaled_dot_product_attention(q, k, v, {}, 0, causal),
                     math(q, k, v, {}, causal));
      }
    }
  }
}

TEST_F(Attention, SumsAreLogarithmsOfTheRowsExponentials) {
  const Tensor q = random({1, 2, 10, 8});
  const Tensor k = random({1, 2, 12, 8});
  const auto [output, logsumexp] = _scaled_dot_product_flash_attention_for_cpu(q, k, k);
  const Tensor scores = mul(matmul(q, k.transpose(2, 3)), 1 / std::sqrt(8.0));
  expect_close(logsumexp, log(sum(exp(scores), {-1})));
}

TEST_F(Attention, MasksBroadcast) {
  const Tensor q = random({2, 3, 20, 8});
  const Tensor k = random({2, 3, 30, 8});
  const Tensor v = random({2, 3, 30, 8});
  for (const Tensor& mask : {random({20, 30}), random({2, 1, 1, 30}), random({3, 20, 1})}) {
    expect_close(scaled_dot_product_attention(q, k, v, mask), math(q, k, v, mask));
    const Tensor kept = gt(mask, 0);
    expect_close(scaled_dot_product_attention(q, k, v, kept), math(q, k, v, kept));
  }
  EXPECT_THROW(scaled_dot_product_attention(q, k, v, random({20, 29})), ShapeError);
  EXPECT_THROW(scaled_dot_product_attention(q, k, v, random({20, 30}), 0, true), ShapeError);
}

TEST_F(Attention, RowThatSeesNothingIsZeroWithZeroGradient) {
  const Tensor q = random({1, 1, 3, 8}).set_requires_grad();
  const Tensor k = random({1, 1, 5, 8});
  const Tensor seen = tensor_from<int64_t>({1, 0, 1}, {3, 1}).to(DType::kBool);
  for (bool fused : {false, true}) {
    const Tensor output = fused ? scaled_dot_product_attention(q, k, k, seen) : math(q, k, k, seen);
    EXPECT_TRUE(equal(output.detach().select(2, 1), zeros({1, 1, 8})));
    const Tensor gradient = grad({sum(output)}, {q})[0];
    EXPECT_TRUE(equal(gradient.select(2, 1), zeros({1, 1, 8})));
    EXPECT_TRUE(all(isfinite(gradient)).item<bool>());
  }
}

TEST_F(Attention, PartsOfAJointProjectionAreReadInPlace) {
  const Tensor joint = random({2, 70, 3 * 4 * 16});
  std::vector<Tensor> parts;
  for (const Tensor& part : joint.split(64, 2)) {
    parts.push_back(part.view({2, 70, 4, 16}).transpose(1, 2));
  }
  const int64_t before = hidden_copies().copies;
  const Tensor output = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, true);
  const Tensor joined = output.transpose(1, 2);
  EXPECT_TRUE(joined.is_contiguous());
  EXPECT_EQ(hidden_copies().copies, before);
  expect_close(output,
               math(parts[0].contiguous(), parts[1].contiguous(), parts[2].contiguous(), {}, true));
}

TEST_F(Attention, AMaskOfIntegersIsRefused) {
  const Tensor x = random({2, 3, 8});
  const Tensor mask = ones({3, 3}, {DType::kI64});
  EXPECT_THROW(scaled_dot_product_attention(x, x, x, mask), DTypeError);
}

TEST_F(Attention, BatchesAndHeadsMayBeEmpty) {
  for (const bool causal : {false, true}) {
    const Tensor none = random({0, 3, 8});
    EXPECT_EQ(scaled_dot_product_attention(none, none, none, {}, 0, causal).shape(), none.shape());
    const Tensor heads = random({2, 0, 3, 8});
    EXPECT_EQ(scaled_dot_product_attention(heads, heads, heads, {}, 0, causal, std::nullopt, true)
                  .shape(),
              heads.shape());
  }
}

TEST_F(Attention, WithoutKeysTheOutputAndTheGradientAreZero) {
  const Tensor q = random({2, 3, 5, 8}).set_requires_grad();
  const Tensor none = zeros({2, 3, 0, 8});
  // The results are to be written into memory that holds other values.
  const auto use_memory = [&] { full({2, 3, 5, 8}, Scalar(NAN)); };
  use_memory();
  const Tensor output = scaled_dot_product_attention(q, none, none);
  EXPECT_TRUE(equal(output.detach(), zeros({2, 3, 5, 8})));
  const Tensor weights = ones({2, 3, 5, 8});
  use_memory();
  EXPECT_TRUE(equal(grad({output}, {q}, {weights})[0], zeros({2, 3, 5, 8})));
}

TEST_F(Attention, TheSumsOfTheBackwardPassMayBeStrided) {
  const Tensor q = random({2, 3, 10, 8});
  const Tensor k = random({2, 3, 12, 8});
  const Tensor weights = random({2, 3, 10, 8});
  const auto [output, logsumexp] = _scaled_dot_product_flash_attention_for_cpu(q, k, k);
  const Tensor strided = logsumexp.transpose(1, 2).contiguous().transpose(1, 2);
  ASSERT_FALSE(strided.is_contiguous());
  const auto backward = [&](const Tensor& sums) {
    return _scaled_dot_product_flash_attention_for_cpu_backward(weights, q, k, k, output, sums, 0,
                                                                false);
  };
  EXPECT_TRUE(equal(std::get<0>(backward(strided)), std::get<0>(backward(logsumexp))));
  EXPECT_TRUE(equal(std::get<1>(backward(strided)), std::get<1>(backward(logsumexp))));
}

TEST_F(Attention, RowsMayBeStrided) {
  const Tensor q = random({1, 2, 8, 20}).transpose(2, 3);
  const Tensor k = random({2, 30, 16}).slice(2, 0, 16, 2).unsqueeze(0);
  expect_close(scaled_dot_product_attention(q, k, k), math(q, k, k));
  const Tensor one = random({1, 2, 1, 8}).expand({1, 2, 20, 8});
  expect_close(scaled_dot_product_attention(one, k, k), math(one, k, k));
}

/// Gradients of q, k and v when the output gets the gradient `weights`.
std::vector<Tensor> gradients(const Tensor& output, const std::vector<Tensor>& leaves,
                              const Tensor& weights) {
  return grad({output}, leaves, {weights});
}

TEST_F(Attention, GradientsAgreeWithPlainOperators) {
  for (int64_t key_heads : {1, 2, 4}) {
    for (bool causal : {false, true}) {
      const Tensor q = random({2, 4, 130, 16}).set_requires_grad();
      const Tensor k = random({2, key_heads, 90, 16}).set_requires_grad();
      const Tensor v = random({2, key_heads, 90, 16}).set_requires_grad();
      const Tensor weights = random({2, 4, 130, 16});
      const auto got = gradients(scaled_dot_product_attention(q, k, v, {}, 0, causal, 0.4, true),
                                 {q, k, v}, weights);
      const auto want = gradients(math(q, k, v, {}, causal, 0.4, true), {q, k, v}, weights);
      for (size_t i = 0; i < 3; ++i) expect_close(got[i], want[i], 2e-4);
    }
  }
}

TEST_F(Attention, GradientsWithAMaskAgreeWithPlainOperators) {
  const Tensor q = random({2, 2, 70, 8}).set_requires_grad();
  const Tensor k = random({2, 2, 40, 8}).set_requires_grad();
  const Tensor mask = random({2, 1, 70, 40});
  const Tensor weights = random({2, 2, 70, 8});
  const auto got = gradients(scaled_dot_product_attention(q, k, k, mask), {q, k}, weights);
  const auto want = gradients(math(q, k, k, mask), {q, k}, weights);
  for (size_t i = 0; i < 2; ++i) expect_close(got[i], want[i], 1e-4);
}

TEST_F(Attention, MaskThatRequiresGradGetsOne) {
  const Tensor q = random({1, 2, 4, 8});
  const Tensor mask = random({4, 4}).set_requires_grad();
  EXPECT_TRUE(grad({sum(scaled_dot_product_attention(q, q, q, mask))}, {mask})[0].defined());
}

TEST_F(Attention, DropoutScalesWhatItKeeps) {
  const Tensor q = zeros({1, 1, 400, 4});
  const Tensor v = ones({1, 1, 400, 4});
  const Tensor output = scaled_dot_product_attention(q, q, v, {}, 0.25);
  EXPECT_NEAR(mean(output).item<float>(), 1.0, 0.02);
  EXPECT_GT(max(output).item<float>(), 1.0);
}

TEST_F(Attention, BitsDoNotDependOnTheNumberOfThreads) {
  const int before = num_threads();
  std::vector<Tensor> first;
  const Tensor q = random({1, 4, 150, 16}).set_requires_grad();
  const Tensor k = random({1, 2, 150, 16}).set_requires_grad();
  for (int threads : {1, 2, 3, 4}) {
    set_num_threads(threads);
    const Tensor output = scaled_dot_product_attention(q, k, k, {}, 0, true, std::nullopt, true);
    std::vector<Tensor> results = grad({sum(square(output))}, {q, k});
    results.push_back(output.detach());
    if (first.empty()) first = results;
    for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(equal(results[i], first[i]));
  }
  set_num_threads(before);
}

TEST_F(Attention, OutputsOfF16AreComputedInF32AndRoundedOnce) {
  for (const bool causal : {false, true}) {
    std::vector<Tensor> halves, wide;
    for (const int64_t heads : {4, 2, 2}) {
      halves.push_back(random({2, heads, 150, 16}).to(DType::kF16));
      wide.push_back(halves.back().to(DType::kF32));
    }
    const auto run = [&](const std::vector<Tensor>& in) {
      return scaled_dot_product_attention(in[0], in[1], in[2], {}, 0, causal, std::nullopt, true);
    };
    EXPECT_TRUE(equal(run(halves), run(wide).to(DType::kF16)));
  }
}

TEST_F(Attention, HalvesMayBeStridedAndMasked) {
  const Tensor mask = random({70, 70});
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const Tensor joint = random({2, 70, 3 * 4 * 16}).to(dtype);
    std::vector<Tensor> parts;
    for (const Tensor& part : joint.split(64, 2)) {
      parts.push_back(part.view({2, 70, 4, 16}).transpose(1, 2));
    }
    const int64_t before = hidden_copies().copies;
    const Tensor output = scaled_dot_product_attention(parts[0], parts[1], parts[2], mask);
    EXPECT_EQ(hidden_copies().copies, before);
    for (Tensor& part : parts) part = part.contiguous();
    EXPECT_TRUE(equal(output, scaled_dot_product_attention(parts[0], parts[1], parts[2], mask)));
    const Tensor turned = random({1, 2, 16, 20}).to(dtype).transpose(2, 3);
    const Tensor straight = turned.contiguous();
    EXPECT_TRUE(equal(scaled_dot_product_attention(turned, turned, turned),
                      scaled_dot_product_attention(straight, straight, straight)));
  }
}

TEST_F(Attention, TheSecondDerivativeOfHalvesExists) {
  const Tensor q = random({1, 2, 6, 8}).to(DType::kBF16).set_requires_grad();
  GradOptions options;
  options.create_graph = true;
  const Tensor output = scaled_dot_product_attention(q, q, q, random({6, 6}));
  const Tensor first = grad({sum(square(output))}, {q}, {}, options)[0];
  const Tensor second = grad({sum(square(first))}, {q})[0];
  EXPECT_EQ(second.dtype(), DType::kBF16);
  EXPECT_TRUE(all(isfinite(second)).item<bool>());
}

}  // namespace
}  // namespace lockstep
