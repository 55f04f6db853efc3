#include "core/ops/image/pool.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/device/copies.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "kernels/common/pool_axis.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

TEST(CudaPool, MeansOfWindowsAgreeWithTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    for (const bool counts_padding : {false, true}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << counts_padding);
      expect_agreement(
          {random_leaf({2, 3, 9, 8}, dtype)},
          [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
            return {avg_pool2d(t[0], Dims{3, 2}, Dims{2, 1}, Dims{1, 0}, true, counts_padding)};
          },
          rounding_of(dtype));
    }
  }
  expect_agreement({random_leaf({2, 5, 6, 7})},
                   [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
                     return {avg_pool3d(t[0], Dims{2}, Dims{}, Dims{1}, false, true, 3)};
                   });
}

TEST(CudaPool, EvenWindowsOverlapWhereTheyMust) {
  for (const Dims& size : {Dims{3, 5}, Dims{7, 1}, Dims{11, 13}}) {
    expect_agreement({random_leaf({2, 2, 7, 9})},
                     [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
                       return {adaptive_avg_pool2d(t[0], size)};
                     });
  }
  expect_agreement({random_leaf({2, 4, 5, 6})},
                   [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
                     return {adaptive_avg_pool3d(t[0], Dims{3, 2, 4})};
                   });
}

TEST(CudaPool, LargestElementsTheirPlacesAndGradients) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    expect_agreement(
        {random_leaf({2, 3, 9, 8}, dtype)},
        [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
          const auto [values, indices] =
              max_pool2d_with_indices(t[0], Dims{3, 2}, Dims{2, 1}, Dims{1, 1}, Dims{2, 1});
          return {values, indices};
        },
        rounding_of(dtype));
  }
  expect_agreement({random_leaf({2, 5, 6, 7})},
                   [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
                     const auto [values, indices] = max_pool3d_with_indices(t[0], Dims{2}, Dims{1});
                     return {values, indices};
                   });
}

TEST(CudaPool, IntegersAndNotANumber) {
  const Compute largest = [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    const auto [values, indices] = max_pool2d_with_indices(t[0], Dims{3}, Dims{2});
    return {values, indices};
  };
  expect_agreement({mul(random_tensor({1, 2, 9, 9}), 5).to(DType::kI16)}, largest, 0);
  Tensor x = random_tensor({1, 1, 7, 7});
  x.data<float>()[9] = x.data<float>()[10] = std::nanf("");
  expect_agreement({x}, largest, 0);
}

TEST(CudaPool, IndicesOfOtherWindowsAreFoundAndBadOnesAreReported) {
  const Tensor gradient = random_tensor({1, 1, 2, 2}), x = random_tensor({1, 1, 4, 4});
  Tensor indices = zeros({1, 1, 2, 2}, DType::kI64);
  indices.data<int64_t>()[1] = 15;
  const Compute backward = [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    return {max_pool2d_with_indices_backward(t[0], t[1], Dims{2}, Dims{2}, Dims{0}, Dims{1}, false,
                                             t[2])};
  };
  expect_agreement({gradient, x, indices}, backward, 0);
  indices.data<int64_t>()[2] = 16;
  EXPECT_THROW(backward({gradient.to(kGpu), x.to(kGpu), indices.to(kGpu)})[0].to(kCPU), Error);
}

TEST(CudaPool, ChannelsInnermostNeedNoCopies) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Tensor x = clone(random_tensor({2, 5, 9, 8}, dtype), MemoryFormat::kChannelsLast);
    const Compute pools[] = {[](const std::vector<Tensor>& t) -> std::vector<Tensor> {
                               return {avg_pool2d(t[0], Dims{3, 2}, Dims{2, 1}, Dims{1, 0})};
                             },
                             [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
                               return {adaptive_avg_pool2d(t[0], Dims{4, 3})};
                             },
                             [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
                               const auto [out, indices] =
                                   max_pool2d_with_indices(t[0], Dims{3}, Dims{2}, Dims{1});
                               return {out, indices};
                             }};
    for (const Compute& pool : pools) {
      expect_agreement({x.detach().set_requires_grad()}, pool, rounding_of(dtype));
      const Tensor leaf = x.to(kGpu).set_requires_grad();
      const int64_t before = hidden_copies().copies;
      const Tensor out = pool({leaf})[0];
      grad({out}, {leaf}, {clone(out.detach(), MemoryFormat::kChannelsLast)});
      EXPECT_EQ(hidden_copies().copies, before);
    }
  }
}

TEST(PoolAxis, NearWindowsAreAllThatHaveAPlace) {
  std::vector<PoolAxis> axes;
  for (const int64_t windows : {1, 4, 7, 12}) axes.push_back({.size = 7, .windows = windows});
  for (const int64_t stride : {1, 2, 3}) {
    for (const int64_t step : {1, 2}) {
      for (const int64_t padding : {0, 1}) {
        PoolAxis axis{
            .size = 9, .dilation = step, .kernel = 3, .stride = stride, .padding = padding};
        axis.windows = (9 + 2 * padding - 2 * step - 1) / stride + 1;
        axis.adaptive = false;
        axes.push_back(axis);
      }
    }
  }
  for (const PoolAxis& axis : axes) {
    for (int64_t place = 0; place < axis.size; ++place) {
      int64_t first, last;
      axis.windows_near(place, first, last);
      for (int64_t o = 0; o < axis.windows; ++o) {
        if (axis.has(axis.window(o), place)) {
          EXPECT_TRUE(first <= o && o < last) << place << " of " << axis.size << ", window " << o;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
