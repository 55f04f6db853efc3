#include "core/ops/conv/conv.h"

#include <gtest/gtest.h>

#include "core/ops/pointwise/pointwise.h"
#include "kernels/cuda/conv/conv.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

struct Options {
  Dims stride = {1}, padding = {0}, dilation = {1};
  bool transposed = false;
  Dims output_padding = {0};
  int64_t groups = 1;
};

/// A convolution of {input, weight, bias}.
Compute convolved(const Options& o) {
  return [o](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    return {convolution(t[0], t[1], t[2], o.stride, o.padding, o.dilation, o.transposed,
                        o.output_padding, o.groups)};
  };
}

void expect_convolved(const Dims& input, const Dims& weight, const Options& options,
                      DType dtype = DType::kF32) {
  SCOPED_TRACE(to_string(input) + " and " + to_string(weight));
  const int64_t features = options.transposed ? weight[1] * options.groups : weight[0];
  expect_agreement({random_leaf(input, dtype, 1), random_leaf(weight, dtype, 2),
                    random_leaf({features}, dtype, 3)},
                   convolved(options), 3 * rounding_of(dtype));
}

TEST(CudaConv, OneToThreeDimensionsAgreeWithTheCpu) {
  expect_convolved({2, 6, 11}, {5, 6, 3}, {.stride = {2}, .padding = {1}});
  expect_convolved({2, 5, 9, 7}, {5, 5, 3, 2},
                   {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}});
  expect_convolved({1, 5, 4, 5, 6}, {6, 5, 2, 3, 2}, {.stride = {1, 2, 3}, .padding = {1}});
}

TEST(CudaConv, TilesOfRowsAndColumnsAndManyDepths) {
  // More than 64 features, more than 64 output positions, and a reduction longer than 128.
  expect_convolved({1, 17, 9, 9}, {70, 17, 3, 3}, {.padding = {1, 1}});
}

TEST(CudaConv, LargeTilesWhereThereAreEnough) {
  EXPECT_EQ(cuda::conv_tile(128, 128 * 264, 1), 128);
  EXPECT_EQ(cuda::conv_tile(128, 128 * 263, 1), 64);
  EXPECT_EQ(cuda::conv_tile(64, 1 << 30, 1), 64);
  // As small as possible: a reduction of length 1, but the 264 tiles that large tiles need.
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const int64_t columns = 128 * 132 + 5;
    SCOPED_TRACE(to_string(dtype));
    expect_agreement({random_tensor({1, 1, columns}, dtype, 1),
                      random_tensor({131, 1, 1}, dtype, 2), random_tensor({131}, dtype, 3)},
                     convolved({}), 3 * rounding_of(dtype));
    expect_agreement(
        {random_tensor({1, 1, columns}, dtype, 1), random_tensor({1, 131, 2}, dtype, 2), Tensor()},
        convolved({.stride = {2}, .transposed = true}), 3 * rounding_of(dtype));
  }
}

TEST(CudaConv, GroupsAreConvolvedEachByItself) {
  expect_convolved({2, 10, 8, 8}, {14, 5, 3, 3}, {.padding = {1, 1}, .groups = 2});
  expect_convolved({2, 5, 8, 8}, {5, 1, 3, 3}, {.stride = {2, 2}, .groups = 5});
}

TEST(CudaConv, TransposedConvolutionsAgreeWithTheCpu) {
  expect_convolved(
      {2, 4, 5, 6}, {4, 3, 3, 2},
      {.stride = {2, 3}, .padding = {1, 0}, .transposed = true, .output_padding = {1, 1}});
  expect_convolved({2, 4, 7}, {4, 2, 3}, {.dilation = {2}, .transposed = true, .groups = 2});
}

TEST(CudaConv, LongSumsOfAWeightAreCutIntoParts) {
  expect_convolved({3, 2, 30, 30}, {7, 2, 3, 3}, {.padding = {1, 1}});
}

TEST(CudaConv, FewRowsOfAGroupNeedNoTiles) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    // One channel per group with many positions; a reduction longer than one chunk.
    expect_convolved({2, 6, 20, 20}, {12, 1, 3, 3}, {.padding = {1, 1}, .groups = 6}, dtype);
    expect_convolved({1, 40, 6, 6}, {3, 40, 2, 2}, {.stride = {2, 2}}, dtype);
  }
}

TEST(CudaConv, HalvesAndDoublesAgreeWithTheCpu) {
  for (const DType dtype : {DType::kF64, DType::kBF16, DType::kF16}) {
    expect_convolved({2, 5, 9, 9}, {6, 5, 3, 3}, {.padding = {1, 1}}, dtype);
    expect_convolved({2, 3, 9, 9}, {5, 3, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}, dtype);
  }
}

TEST(CudaConv, IntegersWrapAround) {
  const Tensor image = mul(random_tensor({1, 2, 6, 6}), 100).to(DType::kI8);
  const Tensor weight = mul(random_tensor({2, 2, 3, 3}), 100).to(DType::kI8);
  expect_agreement({image, weight, Tensor()}, convolved({}), 0);
}

TEST(CudaConv, ChannelsLastAgreesWithTheCpuInStridesToo) {
  const auto last = [](const Tensor& leaf) {
    return clone(leaf.detach(), MemoryFormat::kChannelsLast).set_requires_grad();
  };
  const Tensor image = random_leaf({2, 6, 7, 5}, DType::kF32, 1);
  const Tensor weight = random_leaf({4, 3, 3, 3}, DType::kF32, 2);
  const Tensor bias = random_leaf({4}, DType::kF32, 3);
  const Compute compute = convolved({.stride = {2, 1}, .padding = {1, 1}, .groups = 2});
  expect_agreement({last(image), last(weight), bias}, compute);
  expect_agreement({last(image), weight, bias}, compute);
  expect_agreement({image, last(weight), bias}, compute);
  const Tensor turned = random_leaf({6, 2, 3, 3}, DType::kF32, 4);
  expect_agreement({last(image), last(turned), Tensor()},
                   convolved({.padding = {1, 0}, .transposed = true}));
}

TEST(CudaConv, ABatchOfNothingHasAGradientOfZeros) {
  expect_convolved({0, 3, 8, 8}, {4, 3, 3, 3}, {});
}

}  // namespace
}  // namespace lockstep
