// Layers compute what PyTorch's compute on the same weights, forward and backward.

#include "autograd/checkpoint.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "nn/conv_layers.h"
#include "nn/image_layers.h"
#include "nn/layers.h"
#include "nn/norm_layers.h"
#include "nn/pad_layers.h"
#include "nn/pool_layers.h"
#include "nn/upsample.h"
#include "tests/core/expect_error.h"
#include "tests/nn/pytorch_case.h"

namespace lockstep::nn {
namespace {

TEST(LikePytorch, LinearLayers) {
  expect_like_pytorch("linear", Linear(4, 3));
  expect_like_pytorch("linear_no_bias", Linear(4, 3, {.bias = false}));
  expect_like_pytorch("bilinear", Bilinear(3, 4, 2));
}

TEST(LikePytorch, Embeddings) {
  expect_like_pytorch("embedding", Embedding(5, 3, {.padding_idx = 1}));
  expect_like_pytorch("embedding_freq", Embedding(5, 3, {.scale_grad_by_freq = true}));
  expect_like_pytorch("embedding_bag_mean", EmbeddingBag(5, 3));
  expect_like_pytorch("embedding_bag_max",
                      EmbeddingBag(5, 3, {.mode = BagMode::kMax, .padding_idx = -5}));
  expect_like_pytorch("embedding_bag_sum", EmbeddingBag(5, 3, {.mode = BagMode::kSum}),
                      [](EmbeddingBag& m, const Tensors& in) -> Tensors {
                        return {m.forward(in[0], in[1], in[2])};
                      });
}

TEST(EmbeddingBag, RowsOfIdsAreAllBagsAlsoWhereOffsetsWouldIncludeTheLast) {
  const EmbeddingBag plain(5, 3, {.mode = BagMode::kSum});
  const EmbeddingBag closed(5, 3, {.mode = BagMode::kSum, .include_last_offset = true});
  closed.weight.detach().copy_(plain.weight.detach());
  const Tensor ids = tensor_from<int64_t>({0, 1, 2, 3, 4, 4}, {3, 2});
  EXPECT_TRUE(equal(closed.forward(ids), plain.forward(ids)));
  const Tensor offsets = tensor_from<int64_t>({0, 2, 4, 6}, {4});
  EXPECT_TRUE(equal(closed.forward(ids.flatten(), offsets), plain.forward(ids)));
}

TEST(LikePytorch, Convolutions) {
  expect_like_pytorch("conv1d",
                      Conv1d(4, 6, 3, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2}));
  expect_like_pytorch("conv2d",
                      Conv2d(3, 4, {3, 2}, ConvOptions{.stride = {2, 1}, .padding = {1, 0}}));
  expect_like_pytorch("conv3d", Conv3d(2, 3, 2, {.padding = 1}));
}

TEST(LikePytorch, ConvolutionsThatPadOtherwiseThanWithZeros) {
  expect_like_pytorch("conv1d_circular",
                      Conv1d(2, 3, 3, {.padding = 2, .padding_mode = PaddingMode::kCircular}));
  expect_like_pytorch(
      "conv2d_reflect",
      Conv2d(2, 2, 3, {.padding = {1, 2}, .bias = true, .padding_mode = PaddingMode::kReflect}));
  expect_like_pytorch("conv2d_replicate",
                      Conv2d(2, 2, 3, {.padding = 1, .padding_mode = PaddingMode::kReplicate}));
  expect_like_pytorch(
      "conv2d_circular",
      Conv2d(1, 2, 3, ConvOptions{.padding = {1, 2}, .padding_mode = PaddingMode::kCircular}));
}

TEST(LikePytorch, Pads) {
  expect_like_pytorch("constant_pad1d", ConstantPad1d({1, -2}, 0.5));
  expect_like_pytorch("zero_pad2d", ZeroPad2d({1, 0, 2, 1}));
  expect_like_pytorch("reflection_pad2d", ReflectionPad2d({1, 2, 0, 1}));
  expect_like_pytorch("replication_pad3d", ReplicationPad3d(1));
  expect_like_pytorch("circular_pad1d", CircularPad1d({2, 1}));
  expect_like_pytorch("circular_pad2d", CircularPad2d({1, 2, 0, 1}));
}

TEST(LikePytorch, TransposedConvolutions) {
  expect_like_pytorch("conv_transpose1d",
                      ConvTranspose1d(4, 6, 3, {.stride = 2, .output_padding = 1, .groups = 2}));
  expect_like_pytorch("conv_transpose2d", ConvTranspose2d(3, 2, 3, {.stride = 2, .padding = 1}));
  expect_like_pytorch("conv_transpose3d", ConvTranspose3d(2, 2, 2, {.dilation = 2}));
}

TEST(LikePytorch, BatchNormsInTrainingAndEvaluation) {
  for (const bool training : {true, false}) {
    const std::string mode = training ? "_train" : "_eval";
    expect_like_pytorch("batch_norm1d" + mode, BatchNorm1d(3), training);
    expect_like_pytorch("batch_norm1d_3d" + mode, BatchNorm1d(3, {.eps = 1e-3, .momentum = 0.3}),
                        training);
    expect_like_pytorch("batch_norm2d" + mode, BatchNorm2d(2), training);
    expect_like_pytorch("batch_norm3d" + mode, BatchNorm3d(2), training);
  }
  expect_like_pytorch("batch_norm2d_plain",
                      BatchNorm2d(2, {.affine = false, .track_running_stats = false}), false);
}

TEST(LikePytorch, InstanceNorms) {
  for (const bool training : {true, false}) {
    expect_like_pytorch(training ? "instance_norm2d_train" : "instance_norm2d_eval",
                        InstanceNorm2d(2, {.affine = true, .track_running_stats = true}), training);
  }
  expect_like_pytorch("instance_norm1d", InstanceNorm1d(3));
  expect_like_pytorch("instance_norm1d_unbatched", InstanceNorm1d(3, {.affine = true}));
  expect_like_pytorch("instance_norm3d", InstanceNorm3d(2, {.affine = true}));
}

TEST(InstanceNorm, ARecomputedPassMovesTheStatisticsOnce) {
  const InstanceNorm2d norm(2, {.affine = true, .track_running_stats = true});
  const InstanceNorm2d same(2, {.affine = true, .track_running_stats = true});
  const Tensor x = arange(32, DType::kF32).reshape({2, 2, 2, 4}).set_requires_grad();
  checkpoint([&](const Tensor& input) { return exp(norm.forward(input)); }, x).sum().backward();
  same.forward(x);
  EXPECT_TRUE(equal(norm.running_mean, same.running_mean));
  EXPECT_TRUE(equal(norm.running_var, same.running_var));
}

TEST(LikePytorch, NormsOverTheLastDimensionsAndGroups) {
  expect_like_pytorch("layer_norm", LayerNorm({3, 4}));
  expect_like_pytorch("layer_norm_no_bias", LayerNorm(4, {.eps = 1e-3, .bias = false}));
  expect_like_pytorch("layer_norm_plain", LayerNorm(4, {.elementwise_affine = false}));
  expect_like_pytorch("rms_norm", RMSNorm({3, 4}));
  expect_like_pytorch("rms_norm_plain", RMSNorm(4, {.eps = 1e-2, .elementwise_affine = false}));
  expect_like_pytorch("group_norm", GroupNorm(2, 4));
}

TEST(LikePytorch, Pools) {
  expect_like_pytorch("max_pool1d", MaxPool1d(3, {.stride = 2, .padding = 1}));
  expect_like_pytorch("max_pool2d", MaxPool2d({2, 3}, {.dilation = {2, 1}, .ceil_mode = true}));
  expect_like_pytorch("max_pool3d", MaxPool3d(2));
  expect_like_pytorch("avg_pool1d",
                      AvgPool1d(3, {.stride = 2, .padding = 1, .count_include_pad = false}));
  expect_like_pytorch("avg_pool2d", AvgPool2d({2, 3}, {.divisor_override = 5}));
  expect_like_pytorch("avg_pool3d", AvgPool3d(2, {.stride = 1}));
  expect_like_pytorch("adaptive_avg_pool1d", AdaptiveAvgPool1d(3));
  expect_like_pytorch("adaptive_avg_pool2d", AdaptiveAvgPool2d({3, 2}));
  expect_like_pytorch("adaptive_avg_pool3d", AdaptiveAvgPool3d(2));
  expect_like_pytorch("adaptive_max_pool1d", AdaptiveMaxPool1d(3));
  expect_like_pytorch("adaptive_max_pool2d", AdaptiveMaxPool2d({3, 2}));
  expect_like_pytorch("adaptive_max_pool3d", AdaptiveMaxPool3d(2));
}

TEST(LikePytorch, Upsampling) {
  using enum UpsampleMode;
  expect_like_pytorch("upsample_nearest", Upsample({.scale_factor = {1.7}}));
  expect_like_pytorch("upsample_nearest1d", Upsample({.size = 5}));
  expect_like_pytorch("upsample_linear", Upsample({.scale_factor = {2}, .mode = kLinear}));
  expect_like_pytorch(
      "upsample_bilinear",
      Upsample({.size = SpatialSize{5, 3}, .mode = kBilinear, .align_corners = true}));
  expect_like_pytorch("upsample_bicubic", Upsample({.scale_factor = {2, 1.5}, .mode = kBicubic}));
  expect_like_pytorch("upsample_trilinear", Upsample({.scale_factor = {2}, .mode = kTrilinear}));
  expect_error<Error>([] { Upsample({}); }, "[upsample]", "neither");
  expect_error<ShapeError>(
      [] {
        Upsample({.size = 2, .mode = kLinear}).forward(ones({1, 1, 2, 2}));
      },
      "[upsample]", "[1, 1, 2, 2]");
}

}  // namespace
}  // namespace lockstep::nn
