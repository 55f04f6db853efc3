#include "nn/multihead_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/grad_mode.h"
#include "core/ops/index/index.h"
#include "nn/transformer.h"
#include "tests/core/expect_error.h"
#include "tests/nn/pytorch_case.h"

namespace lockstep::nn {
namespace {

using enum AttentionWeights;

/// True above the diagonal: no attention to what comes later.
Tensor later(int64_t length) { return triu(ones({length, length}), 1) == 1; }

Tensors both(const Attended& attended) { return {attended.output, attended.weights}; }

TEST(MultiheadAttention, IsLikePytorch) {
  const auto to_itself = [](MultiheadAttention& m, const Tensors& in) {
    return both(m.forward(in[0], in[0], in[0], {}, kMean));
  };
  expect_like_pytorch("attention", MultiheadAttention(6, 2), to_itself);
  expect_like_pytorch("attention_unbatched", MultiheadAttention(4, 2), to_itself);
  expect_like_pytorch("attention_per_head", MultiheadAttention(6, 3, {.bias = false}),
                      [](MultiheadAttention& m, const Tensors& in) {
                        return both(m.forward(in[0], in[0], in[0], {}, kPerHead));
                      });
  expect_like_pytorch("attention_cross",
                      MultiheadAttention(6, 2, {.kdim = 3, .vdim = 5, .batch_first = true}),
                      [](MultiheadAttention& m, const Tensors& in) {
                        return both(m.forward(in[0], in[1], in[2], {}, kMean));
                      });
  expect_like_pytorch("attention_other_key", MultiheadAttention(6, 2),
                      [](MultiheadAttention& m, const Tensors& in) {
                        return both(m.forward(in[0], in[1], in[1], {}, kMean));
                      });
}

TEST(MultiheadAttention, MasksAreLikePytorch) {
  expect_like_pytorch(
      "attention_masked", MultiheadAttention(6, 2, {.batch_first = true}),
      [](MultiheadAttention& m, const Tensors& in) {
        return both(m.forward(in[0], in[0], in[0],
                              {.key_padding_mask = in[1], .attn_mask = later(4)}, kMean));
      });
  expect_like_pytorch("attention_added", MultiheadAttention(6, 2, {.batch_first = true}),
                      [](MultiheadAttention& m, const Tensors& in) {
                        return both(m.forward(in[0], in[0], in[0], {.attn_mask = in[1]}, kMean));
                      });
}

TEST(MultiheadAttention, GivesTheSameWithoutWeights) {
  manual_seed(1);
  const MultiheadAttention attention(8, 2, {.batch_first = true});
  const Tensor x = random_tensor({2, 5, 8});
  const Tensor padding = tensor_of({0, 0, 0, 0, 1, 0, 0, 0, 0, 0}).view({2, 5}) == 1;
  for (const AttentionMasks& masks :
       {AttentionMasks{}, AttentionMasks{.is_causal = true}, AttentionMasks{.attn_mask = later(5)},
        AttentionMasks{.key_padding_mask = padding, .is_causal = true}}) {
    const Attended fast = attention.forward(x, x, x, masks);
    EXPECT_FALSE(fast.weights.defined());
    expect_near(fast.output, attention.forward(x, x, x, masks, kMean).output, 1e-5, 1e-5);
  }
}

TEST(MultiheadAttention, CausalIsTheMaskOfWhatComesLater) {
  manual_seed(1);
  const MultiheadAttention attention(8, 2, {.batch_first = true});
  const Tensor x = random_tensor({2, 5, 8});
  expect_near(attention.forward(x, x, x, {.is_causal = true}).output,
              attention.forward(x, x, x, {.attn_mask = later(5)}).output, 1e-6, 1e-5);
}

TEST(MultiheadAttention, StartsAsPytorchDoes) {
  manual_seed(1);
  const MultiheadAttention attention(32, 2);
  const double bound = std::sqrt(6.0 / (32 + 96));
  const Numbers weights = values(attention.in_proj_weight);
  EXPECT_LE(*std::max_element(weights.begin(), weights.end()), bound);
  EXPECT_GE(*std::max_element(weights.begin(), weights.end()), 0.98 * bound);
  EXPECT_EQ(values(attention.in_proj_bias), Numbers(96, 0.0));
  EXPECT_EQ(values(attention.out_proj.bias), Numbers(32, 0.0));
}

TEST(MultiheadAttention, RefusesWhatDoesNotFit) {
  expect_error<ShapeError>([] { MultiheadAttention(6, 4); }, "[multihead_attention]", "6", "4");
  const MultiheadAttention attention(4, 2, {.batch_first = true});
  const Tensor x = random_tensor({2, 3, 4});
  expect_error<ShapeError>([&] { attention.forward(x, x, x, {.key_padding_mask = later(3)}); },
                           "key_padding_mask", "[2, 3]", "[3, 3]");
  expect_error<ShapeError>([&] { attention.forward(x, x, x, {.attn_mask = later(2)}); },
                           "attn_mask", "[3, 3]", "[2, 2]");
}

TEST(Transformer, LayersAreLikePytorch) {
  const TransformerLayerOptions options{.dim_feedforward = 8, .dropout = 0, .batch_first = true};
  expect_like_pytorch(
      "encoder_layer", TransformerEncoderLayer(6, 2, options),
      [](TransformerEncoderLayer& m, const Tensors& in) -> Tensors {
        return {m.forward(in[0], {.key_padding_mask = in[1], .attn_mask = later(4)})};
      });
  expect_like_pytorch("encoder_layer_norm_first",
                      TransformerEncoderLayer(6, 2,
                                              {.dim_feedforward = 8,
                                               .dropout = 0,
                                               .activation = TransformerActivation::kGELU,
                                               .layer_norm_eps = 1e-4,
                                               .norm_first = true,
                                               .bias = false}));
  expect_like_pytorch("encoder", TransformerEncoder(4, 2, 2, options, true));
  expect_like_pytorch("decoder_layer", TransformerDecoderLayer(6, 2, options),
                      [](TransformerDecoderLayer& m, const Tensors& in) -> Tensors {
                        return {m.forward(in[0], in[1], {.self = {.is_causal = true}})};
                      });
  TransformerLayerOptions norm_first = options;
  norm_first.norm_first = true;
  expect_like_pytorch("decoder", TransformerDecoder(4, 2, 2, norm_first, true));
}

TEST(Transformer, TokensOneByOneWithACacheGiveWhatAllTogetherGive) {
  manual_seed(1);
  const NoGradGuard no_grad;
  for (const bool batch_first : {true, false}) {
    TransformerEncoder model(8, 2, 2, {.dim_feedforward = 16, .batch_first = batch_first});
    model.eval();
    const int64_t dim = batch_first ? 1 : 0;
    const Tensor x = random_tensor(batch_first ? Dims{2, 6, 8} : Dims{6, 2, 8});
    const AttentionMasks causal{.is_causal = true};
    const Tensor wanted = model.forward(x, causal);
    KvCache cache(2, 6);
    // Three tokens at once, then one by one.
    expect_near(model.forward(x.slice(dim, 0, 3), causal, &cache), wanted.slice(dim, 0, 3), 1e-5,
                1e-5);
    for (int64_t i = 3; i < 6; ++i) {
      EXPECT_EQ(cache.length(), i);
      expect_near(model.forward(x.slice(dim, i, i + 1), causal, &cache),
                  wanted.slice(dim, i, i + 1), 1e-5, 1e-5);
    }
  }
}

TEST(Transformer, DropsInTrainingOnly) {
  manual_seed(1);
  TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16, .dropout = 0.5});
  const Tensor x = random_tensor({3, 2, 8});
  EXPECT_NE(values(layer.forward(x)), values(layer.forward(x)));
  layer.eval();
  EXPECT_EQ(values(layer.forward(x)), values(layer.forward(x)));
}

}  // namespace
}  // namespace lockstep::nn
