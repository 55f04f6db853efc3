#include "core/ops/attention/attention.h"

#include <gtest/gtest.h>

#include "core/ops/attention/attention_of_qkv.h"
#include "core/ops/pointwise/pointwise.h"
#include "kernels/cuda/attention/attention.h"
#include "tests/cuda/same_bits.h"

namespace lockstep {
namespace {

struct Shape {
  int64_t heads, key_heads, rows, keys, width;
};

Compute attention(bool causal, std::optional<double> scale = {}) {
  return [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    const OptionalTensor mask = t.size() > 3 ? OptionalTensor(t[3]) : OptionalTensor();
    const auto [out, logsumexp] =
        _scaled_dot_product_flash_attention_for_cpu(t[0], t[1], t[2], 0, causal, mask, scale);
    return {out, logsumexp};
  };
}

std::vector<Tensor> random_heads(const Shape& s, DType dtype = DType::kF32) {
  return {random_leaf({2, s.heads, s.rows, s.width}, dtype, 1),
          random_leaf({2, s.key_heads, s.keys, s.width}, dtype, 2),
          random_leaf({2, s.key_heads, s.keys, s.width}, dtype, 3)};
}

TEST(CudaAttention, BlocksThatAreNotFullAgreeWithTheCpu) {
  // Numbers of rows and keys around the tile size of 64, and widths around those of a block.
  for (const Shape& shape : {Shape{2, 2, 1, 1, 1}, Shape{2, 1, 65, 130, 7}, Shape{1, 1, 64, 64, 64},
                             Shape{3, 1, 70, 3, 65}, Shape{1, 1, 5, 70, 130}}) {
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(testing::Message() << shape.rows << " queries, " << shape.keys << " keys, width "
                                      << shape.width << (causal ? ", causal" : ""));
      expect_agreement(random_heads(shape), attention(causal));
    }
  }
}

TEST(CudaAttention, HalvesAgreeWithTheCpu) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    expect_agreement(random_heads({2, 1, 67, 80, 16}, dtype), attention(true), rounding_of(dtype));
  }
}

TEST(CudaAttention, HeadsInAJointProjectionAgreeWithTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool causal : {false, true}) {
      const std::vector<Tensor> qkv = {random_leaf({2, 67, 5 * 16}, dtype, 1)};
      const Compute compute = [causal](const std::vector<Tensor>& t) -> std::vector<Tensor> {
        return {attention_of_qkv(t[0], 3, 1, causal)};
      };
      expect_agreement(qkv, compute, rounding_of(dtype));
    }
  }
}

TEST(CudaAttention, EqualCallsOfHalvesGiveEqualBits) {
  // cuDNN computes this where it is available.
  const std::vector<Tensor> arguments = random_heads({4, 2, 130, 130, 64}, DType::kBF16);
  expect_agreement(arguments, attention(true), rounding_of(DType::kBF16));
  const auto gradients = [&] {
    std::vector<Tensor> there;
    for (const Tensor& argument : arguments) {
      there.push_back(argument.detach().to(kGpu).set_requires_grad());
    }
    const Tensor out = attention(true)(there)[0];
    std::vector<Tensor> all = grad({out}, there, {out.detach()});
    all.push_back(out.detach());
    return all;
  };
  const std::vector<Tensor> once = gradients(), again = gradients();
  for (size_t i = 0; i < once.size(); ++i) expect_equal_bits(again[i], once[i]);
}

TEST(CudaAttention, MasksStretchAndMayBlindRows) {
  std::vector<Tensor> arguments = random_heads({2, 2, 66, 70, 8});
  Tensor mask = random_tensor({2, 1, 66, 70}, DType::kF32, 4);
  for (int64_t key = 0; key < 70; ++key) {
    mask.data<float>()[3 * 70 + key] = -std::numeric_limits<float>::infinity();
    if (key % 2 == 0) mask.data<float>()[key] = -std::numeric_limits<float>::infinity();
  }
  arguments.push_back(mask);
  expect_agreement(arguments, attention(false, 0.3));
  arguments[3] = random_tensor({70}, DType::kF32, 5);
  expect_agreement(arguments, attention(false));
}

TEST(CudaAttention, PartsOfAJointProjectionAreReadWhereTheyLie) {
  const Tensor joint = random_leaf({2, 70, 3, 2, 16});
  expect_agreement({joint}, [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    const auto part = [&](int64_t i) { return t[0].select(2, i).transpose(1, 2); };
    return {scaled_dot_product_attention(part(0), part(1), part(2), {}, 0, true)};
  });
}

TEST(CudaAttention, SaturatedRowsKeepTheirGradients) {
  std::vector<Tensor> arguments = random_heads({1, 1, 40, 100, 16});
  arguments[0] = mul(arguments[0].detach(), 100).set_requires_grad();
  expect_agreement(arguments, attention(false), 2e-4);
}

TEST(CudaAttention, WithoutKeysResultsAreZeros) {
  expect_agreement(
      {random_leaf({1, 1, 3, 8}), random_leaf({1, 1, 0, 8}), random_leaf({1, 1, 0, 8})},
      attention(false));
}

TEST(CudaAttention, ABlockComputesTheWholeOfNarrowHeads) {
  EXPECT_EQ(cuda::attention_columns(1), 64);
  EXPECT_EQ(cuda::attention_columns(64), 64);
  EXPECT_EQ(cuda::attention_columns(65), 128);
  EXPECT_EQ(cuda::attention_columns(256), 128);
}

}  // namespace
}  // namespace lockstep
