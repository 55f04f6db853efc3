#include "core/ops/image/pool.h"

#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "core/device/copies.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(AvgPool, MeansOfWindows) {
  const Tensor x = counting({1, 3, 4});
  EXPECT_EQ(values(avg_pool2d(x, {2})), (Numbers{2.5, 4.5}));
  EXPECT_EQ(values(avg_pool2d(x, {3, 2}, {1, 1})), (Numbers{4.5, 5.5, 6.5}));
}

TEST(AvgPool, PaddingCountsAsZerosOrNotAtAll) {
  const Tensor x = counting({1, 1, 3}) + 1.0;
  EXPECT_EQ(values(avg_pool1d(x, {2}, {2}, {1})), (Numbers{0.5, 2.5}));
  EXPECT_EQ(values(avg_pool1d(x, {2}, {2}, {1}, false, false)), (Numbers{1, 2.5}));
  EXPECT_EQ(values(avg_pool2d(x, {1, 2}, {1, 2}, {0, 1}, false, true, 1)), (Numbers{1, 5}));
}

TEST(AvgPool, CeilModeKeepsTheLastPartialWindow) {
  const Tensor x = counting({1, 1, 5});
  EXPECT_EQ(values(avg_pool1d(x, {2})), (Numbers{0.5, 2.5}));
  EXPECT_EQ(values(avg_pool1d(x, {2}, {}, {0}, true)), (Numbers{0.5, 2.5, 4}));
  // A window that would begin past the end of the input is dropped.
  EXPECT_EQ(avg_pool1d(counting({1, 1, 4}), {1}, {3}, {0}, true).shape(), "[1, 1, 2]");
}

TEST(AvgPool, IntegersAreDividedTowardsZero) {
  const Tensor x = tensor_from<int64_t>({-3, 0, 3, 4}, {1, 1, 4});
  EXPECT_EQ(values(avg_pool1d(x, {2})), (Numbers{-1, 3}));
}

TEST(AvgPool, TheGradientIsSpreadEvenly) {
  const Tensor x = counting({1, 1, 4}).set_requires_grad();
  const Tensor out = avg_pool1d(x, {3}, {1});
  EXPECT_EQ(values(grad({out}, {x}, {tensor_from<float>({3, 6}, {1, 1, 2})})[0]),
            (Numbers{1, 3, 3, 2}));
}

TEST(AdaptiveAvgPool, WindowsCutTheInputEvenly) {
  const Tensor x = counting({1, 1, 5});
  EXPECT_EQ(values(adaptive_avg_pool1d(x, {2})), (Numbers{1, 3}));
  EXPECT_EQ(values(adaptive_avg_pool1d(x, {5})), values(x));
  EXPECT_EQ(values(adaptive_avg_pool1d(counting({1, 1, 2}), {3})), (Numbers{0, 0.5, 1}));
  EXPECT_EQ(values(adaptive_avg_pool2d(counting({2, 3, 3}), {1})), (Numbers{4, 13}));
  EXPECT_EQ(values(adaptive_avg_pool3d(counting({1, 2, 2, 2}), {1, 1, 2})), (Numbers{3, 4}));
}

TEST(MaxPool, LargestElementsAndTheirPlaces) {
  const Tensor x = tensor_from<float>({1, 5, 2, 0, 3, 4, 9, 1, 7}, {1, 3, 3});
  const auto [out, indices] = max_pool2d_with_indices(x, {2}, {1});
  EXPECT_EQ(values(out), (Numbers{5, 5, 9, 7}));
  EXPECT_EQ(values(indices), (Numbers{1, 1, 6, 8}));
}

TEST(MaxPool, PaddingNeverWins) {
  const Tensor x = tensor_from<float>({-3, -1, -2}, {1, 1, 3});
  EXPECT_EQ(values(max_pool1d(x, {3}, {1}, {1})), (Numbers{-1, -1, -1}));
  const float lowest = -std::numeric_limits<float>::infinity();
  const auto [out, indices] = max_pool2d_with_indices(full({1, 2, 2}, lowest), {2});
  EXPECT_EQ(values(out), (Numbers{lowest}));
  EXPECT_EQ(values(indices), (Numbers{0}));
}

TEST(MaxPool, NanWins) {
  const Tensor x = tensor_from<float>({1, std::nanf(""), 3, 2}, {1, 1, 4});
  const Numbers out = values(max_pool1d(x, {2}));
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 3);
}

TEST(MaxPool, DilatedWindowsSkipPlaces) {
  const Tensor x = tensor_from<float>({5, 9, 1, 2, 8}, {1, 1, 5});
  EXPECT_EQ(values(max_pool1d(x, {2}, {1}, {0}, {3})), (Numbers{5, 9}));
}

TEST(MaxPool, TheGradientGoesToTheFirstOfEquals) {
  const Tensor x = tensor_from<float>({2, 2, 1, 2}, {1, 1, 4}).set_requires_grad();
  const Tensor out = max_pool1d(x, {2}, {1});
  EXPECT_EQ(values(grad({out}, {x}, {tensor_from<float>({1, 10, 100}, {1, 1, 3})})[0]),
            (Numbers{1, 10, 0, 100}));
}

TEST(MaxPool, HalvesSumOverlappingGradientsInF32) {
  const Tensor x = zeros({1, 1, 600}, DType::kBF16).clone();
  x.data<BFloat16>()[299] = BFloat16(1.0F);
  x.set_requires_grad();
  const Tensor out = max_pool1d(x, {300}, {1}, {0});  // 300 of 301 windows have the maximum
  const Tensor gradient = grad({out}, {x}, {ones(out.sizes(), DType::kBF16)})[0];
  EXPECT_EQ(values(gradient)[299], 300);
}

TEST(Pool, BitsDoNotDependOnThreads) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Tensor x = random_tensor({9, 31, 21, 18}, dtype);
    expect_same_bits_for_any_threads([&] {
      const auto [out, indices] = max_pool2d_with_indices(x, {3}, {2}, {1});
      const Tensor mean = avg_pool2d(x, {3}, {2}, {1}), even = adaptive_avg_pool2d(x, {5, 4});
      return std::vector<Tensor>{
          out,
          indices,
          mean,
          even,
          max_pool2d_with_indices_backward(out, x, {3}, {2}, {1}, {1}, false, indices),
          avg_pool2d_backward(mean, x, {3}, {2}, {1}, false, true, std::nullopt),
          adaptive_avg_pool2d_backward(even, x)};
    });
  }
}

TEST(Pool, ChannelsInnermostGiveTheSameBitsWithoutACopy) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI32}) {
    const Tensor x = (random_tensor({2, 70, 9, 7}) * 100).to(dtype);
    const auto all = [&](const Tensor& x, MemoryFormat format) {
      const auto [out, indices] = max_pool2d_with_indices(x, {3}, {2}, {1}, {2});
      std::vector<Tensor> results{out, indices, avg_pool2d(x, {3, 2}, {2}, {1})};
      if (is_floating(dtype)) {
        const auto grad = [&](const Tensor& like) {
          return clone((random_tensor(like.sizes(), DType::kF32, 2)).to(dtype), format);
        };
        const Tensor even = adaptive_avg_pool2d(x, {5, 4});
        results.push_back(even);
        results.push_back(adaptive_avg_pool2d_backward(grad(even), x));
        results.push_back(
            avg_pool2d_backward(grad(results[2]), x, {3, 2}, {2}, {1}, false, true, std::nullopt));
        results.push_back(max_pool2d_with_indices_backward(grad(out), x, {3}, {2}, {1}, {2}, false,
                                                           clone(indices, format)));
      }
      return results;
    };
    const std::vector<Tensor> want = all(x, MemoryFormat::kContiguous);
    const Tensor turned = clone(x, MemoryFormat::kChannelsLast);
    const int64_t before = hidden_copies().copies;
    const std::vector<Tensor> got = all(turned, MemoryFormat::kChannelsLast);
    EXPECT_EQ(hidden_copies().copies, before);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(equal(got[i], want[i])) << i;
  }
}

TEST(Pool, MistakesAreNamed) {
  const Tensor x = zeros({1, 2, 4, 4});
  expect_error<ShapeError>([&] { max_pool2d(x, {5}); }, "[max_pool2d]",
                           "no window fits into spatial dimension 0");
  expect_error<ShapeError>([&] { max_pool2d(x, {2}, {1}, {2}); }, "half the kernel");
  expect_error<ShapeError>([&] { max_pool2d(x, {3}, {1}, {2}, {2}); }, "half the kernel");
  expect_error<ShapeError>([&] { avg_pool2d(zeros({1, 0, 4, 4}), {2}); }, "not empty");
  expect_error<ShapeError>([&] { adaptive_avg_pool3d(zeros({1, 0, 4, 4, 4}), {2}); }, "not empty");
  EXPECT_EQ(max_pool2d(zeros({0, 2, 4, 4}), {2}).shape(), "[0, 2, 2, 2]");
  expect_error<ShapeError>(
      [&] {
        max_pool2d(zeros({1, 1, 1}), {2}, {1}, {1}, {2});
      },
      "outside the input");
  expect_error<ShapeError>(
      [&] {
        avg_pool2d(x, {2, 2, 2});
      },
      "kernel_size", "2 spatial dimensions");
  expect_error<ShapeError>([&] { avg_pool2d(zeros({4, 4}), {2}); }, "[avg_pool2d]", "[4, 4]");
  expect_error<ShapeError>([&] { avg_pool2d(x, {2}, {}, {0}, false, true, 0); },
                           "divisor_override");
  expect_error<ShapeError>(
      [&] {
        adaptive_avg_pool2d(zeros({1, 0, 4}), {2});
      },
      "[adaptive_avg_pool2d]", "not empty");
  expect_error<DTypeError>([&] { adaptive_avg_pool2d(x.to(DType::kI64), {2}); }, "int64");
  const Tensor indices = full({1, 2, 2, 2}, 16, DType::kI64);
  expect_error<IndexError>(
      [&] {
        max_pool2d_with_indices_backward(zeros({1, 2, 2, 2}), x, {2}, {}, {0}, {1}, false, indices);
      },
      "index out of range", "16");
}

}  // namespace
}  // namespace lockstep
