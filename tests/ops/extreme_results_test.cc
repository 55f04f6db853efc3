// What operators return for integer arguments at the ends of int64, where the result is defined,
// and what they refuse.

#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"
#include "core/ops/conv/conv.h"
#include "core/ops/factory/factory.h"
#include "core/ops/image/pad.h"
#include "core/ops/image/pool.h"
#include "core/ops/index/index.h"
#include "core/ops/loss/loss.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/sort/sort.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "tests/ops/operator_call.h"

namespace lockstep {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

void expect_same(const Tensor& got, const Tensor& want) {
  EXPECT_EQ(difference({{got}}, {{want}}, 0), "");
}

TEST(ExtremeDiagonals, KeepAllOrNothing) {
  const Tensor matrix = floats({3, 4});
  const Tensor nothing = zeros({3, 4});
  expect_same(tril(matrix, kMost), matrix);
  expect_same(tril(matrix, kLeast), nothing);
  expect_same(triu(matrix, kMost), nothing);
  expect_same(triu(matrix, kLeast), matrix);
  EXPECT_EQ(diagonal(matrix, kMost, 0, 1).numel(), 0);
  EXPECT_EQ(diagonal(matrix, kLeast, 0, 1).numel(), 0);
  EXPECT_THROW(diag_embed(matrix, kMost), ShapeError);
  EXPECT_THROW(diag_embed(matrix, kLeast), ShapeError);
}

TEST(ExtremeParts, AreClampedWhereSlicesAreAndRefusedElsewhere) {
  const Tensor line = floats({5});
  expect_same(slice(line, 0, kLeast, kMost), line);
  expect_same(slice(line, 0, 0, kMost, kMost), slice(line, 0, 0, 1));
  expect_same(slice_scatter(line, floats({1}, 2), 0, 0, 5, kMost),
              slice_scatter(line, floats({1}, 2), 0, 0, 1));
  EXPECT_THROW(narrow(line, 0, kMost, 1), IndexError);
  EXPECT_THROW(narrow(line, 0, 1, kMost), IndexError);
  EXPECT_THROW(narrow(line, 0, kLeast, 1), IndexError);
  EXPECT_EQ(chunk(line, kMost).size(), 5u);
  EXPECT_THROW(chunk(zeros({0}), kMost), ShapeError);
  expect_same(roll(line, {kLeast}, {0}), roll(line, {kLeast % 5}, {0}));
}

TEST(ExtremeWindows, AStrideBeyondTheInputGivesTheFirstWindow) {
  const Tensor signal = floats({1, 2, 6});
  const Tensor weight = floats({3, 2, 3}, 2);
  expect_same(conv1d(signal, weight, {}, {kMost}), conv1d(signal, weight, {}, {100}));
  expect_same(conv1d(signal, floats({3, 2, 1}, 2), {}, {1}, {0}, {kMost}),
              conv1d(signal, floats({3, 2, 1}, 2)));
  const Tensor image = floats({1, 2, 5, 6});
  expect_same(max_pool2d(image, {2, 2}, {kMost, kMost}), max_pool2d(image, {2, 2}, {100, 100}));
}

TEST(ExtremeWindows, WithHugePaddingAndStrideLieInTheInputOrOutsideIt) {
  const Tensor signal = floats({1, 2, 6});
  const Tensor weight = floats({16, 2, 3}, 2);
  for (const int64_t step : {int64_t{1} << 31, int64_t{1} << 33, int64_t{1} << 60}) {
    const Tensor windows = conv1d(signal, weight, {}, {step}, {step});
    ASSERT_EQ(windows.size(2), 3);
    expect_same(windows.slice(2, 0, 1), zeros({1, 16, 1}));
    expect_same(windows.slice(2, 1, 2), conv1d(signal, weight, {}, {100}));
    expect_same(windows.slice(2, 2, 3), zeros({1, 16, 1}));
  }
}

TEST(ExtremeWindows, PaddingAndDilationBeyondInt64AreRefused) {
  const Tensor signal = floats({1, 2, 6});
  const Tensor weight = floats({3, 2, 3}, 2);
  EXPECT_THROW(conv1d(signal, weight, {}, {1}, {kMost}), ShapeError);
  EXPECT_THROW(conv1d(signal, weight, {}, {1}, {0}, {kMost}), ShapeError);
  EXPECT_THROW(constant_pad_nd(signal, {kMost, kMost}), ShapeError);
  EXPECT_THROW(reflection_pad(signal, {kLeast, 1}), ShapeError);
  EXPECT_THROW(pixel_shuffle(floats({4, 2, 2}), int64_t{1} << 32), ShapeError);
  EXPECT_THROW(empty_strided({3}, {kMost}), ShapeError);
}

TEST(ExtremeCounts, AreRefused) {
  EXPECT_THROW(bincount(longs({kMost})), IndexError);
  EXPECT_THROW(one_hot(longs({kMost}), -1), ShapeError);
  EXPECT_THROW(repeat_interleave(floats({3}), kMost), ShapeError);
  EXPECT_THROW(arange(Scalar(kLeast), Scalar(kMost), Scalar(1)), ShapeError);
  EXPECT_THROW(round(floats({3}), kMost), Error);
  EXPECT_THROW(round(floats({3}), kLeast), Error);
  EXPECT_THROW(arange(Scalar(0), Scalar(kLeast), Scalar(-1)), ShapeError);
}

TEST(NllLossBackward, RefusesATotalWeightThatIsNotOneNumber) {
  const Tensor scores = floats({2, 3});
  const Tensor targets = longs({0, 2});
  const auto gradient = [&](const Tensor& total) {
    return nll_loss_backward(ones({}), scores, targets, {}, Reduction::kMean, -100, total);
  };
  EXPECT_NO_THROW(gradient(ones({})));
  EXPECT_THROW(gradient(ones({0})), ShapeError);
  EXPECT_THROW(gradient(integers({}, 1, 2, 1, DType::kU8)), ShapeError);
}

}  // namespace
}  // namespace lockstep
