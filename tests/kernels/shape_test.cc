#include "core/ops/view/shape.h"

#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Cat, JoinsPartsOfAnyStridesAlongAnyDimension) {
  const Tensor a = random_tensor({3, 4, 5});
  const Tensor b = random_tensor({5, 4, 3}, DType::kF32, 2).transpose(0, 2);
  const Tensor c = random_tensor({3, 8, 5}, DType::kF32, 3).slice(1, 0, 8, 2);
  for (const int64_t dim : {0, 1, 2, -1}) {
    const Tensor joined = cat({a, b, c}, dim);
    const int64_t n = a.size(dim);
    EXPECT_TRUE(equal(joined.slice(dim, 0, n), a));
    EXPECT_TRUE(equal(joined.slice(dim, n, 2 * n), b));
    EXPECT_TRUE(equal(joined.slice(dim, 2 * n, 3 * n), c));
  }
}

TEST(Cat, PromotesAndSkipsEmptyVectors) {
  const Tensor joined = cat({zeros({0}), ones({2, 1}, {DType::kI64}), full({2, 2}, 0.5)}, 1);
  EXPECT_EQ(joined.dtype(), DType::kF32);
  EXPECT_EQ(values(joined), (std::vector<double>{1, 0.5, 0.5, 1, 0.5, 0.5}));
  EXPECT_EQ(cat({zeros({0}), zeros({0})}).shape(), "[0]");
}

TEST(Cat, MistakesAreNamed) {
  expect_error<ShapeError>(
      [] {
        cat({zeros({2, 3}), zeros({3, 3})}, 1);
      },
      "[cat]", "[2, 3]", "[3, 3]");
  expect_error<ShapeError>([] { cat({zeros({}), zeros({})}); }, "[cat]", "stack");
  expect_error<ShapeError>([] { cat(TensorList()); }, "[cat] expected at least one tensor");
  expect_error<ShapeError>([] { stack(TensorList()); }, "[stack] expected at least one tensor");
  expect_error<ShapeError>([] { stack({zeros({2}), zeros({3})}); }, "[stack]", "[2]", "[3]");
}

TEST(Shape, StackMakesADimension) {
  const Tensor a = arange(3), b = arange(3, 6);
  EXPECT_EQ(values(stack({a, b})), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(stack({a, b}, -1)), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST(Shape, SliceScatterWritesIntoACopy) {
  const Tensor x = zeros({3, 6});
  const Tensor source = random_tensor({3, 2});
  const Tensor written = slice_scatter(x, source, 1, 1, 5, 2);
  EXPECT_TRUE(equal(written.slice(1, 1, 5, 2), source));
  EXPECT_TRUE(equal(written.slice(1, 0, 6, 2), zeros({3, 3})));
  EXPECT_TRUE(equal(x, zeros({3, 6})));
  expect_error<ShapeError>([&] { slice_scatter(x, source, 1, 0, 5); }, "[slice_scatter]", "[3, 5]",
                           "[3, 2]");
}

TEST(Shape, FlipTurnsDimensionsAround) {
  const Tensor x = arange(6).reshape({2, 3});
  EXPECT_EQ(values(flip(x, {1})), (std::vector<double>{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(values(flip(x.t(), {0, -1})), (std::vector<double>{5, 2, 4, 1, 3, 0}));
  EXPECT_TRUE(equal(flip(flip(x, {0}), {0}), x));
}

TEST(Shape, AsStridedBackwardAddsWhereTheViewOverlaps) {
  // Windows of 3 that move by 1 over 5 elements: the middle one is read three times.
  const Tensor got = as_strided_backward(ones({3, 3}), {5}, {1}, 0, {3, 3}, {1, 1}, 0);
  EXPECT_EQ(values(got), (std::vector<double>{1, 2, 3, 2, 1}));
}

TEST(Shape, AsStridedBackwardReadsTheInputsOwnGeometry) {
  // A transposed input [2, 3] whose storage is read as one run of 6.
  const Tensor got = as_strided_backward(arange(6).to(DType::kF32), {2, 3}, {1, 2}, 0, {6}, {1}, 0);
  EXPECT_EQ(values(got), (std::vector<double>{0, 2, 4, 1, 3, 5}));
  // All elements of an expanded input share one address, and so one gradient.
  const Tensor expanded = as_strided_backward(full({1}, 6.0), {3}, {0}, 0, {1}, {1}, 0);
  EXPECT_EQ(values(expanded), (std::vector<double>{2, 2, 2}));
}

TEST(Shape, RepeatInterleaveRepeatsEachPart) {
  const Tensor x = arange(4).reshape({2, 2});
  EXPECT_EQ(values(repeat_interleave(x, 2)), (std::vector<double>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(values(repeat_interleave(x, 2, 0)), (std::vector<double>{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(repeat_interleave(x, 0, 1).shape(), "[2, 0]");
  EXPECT_EQ(repeat_interleave(full({}, 1), 3).shape(), "[3]");
  for (const int64_t dim : {0, 1}) {
    EXPECT_NE(repeat_interleave(x, 1, dim).storage().get(), x.storage().get()) << "no view";
  }
}

TEST(Shape, NarrowUnbindAndChunkAreViews) {
  const Tensor x = random_tensor({7, 3});
  EXPECT_TRUE(equal(narrow(x, 0, -3, 2), x.slice(0, 4, 6)));
  expect_error<IndexError>([&] { narrow(x, 0, 6, 2); }, "[narrow]", "[7, 3]");
  const std::vector<Tensor> rows = unbind(x);
  ASSERT_EQ(rows.size(), 7U);
  EXPECT_TRUE(equal(rows[6], x.select(0, 6)));
  EXPECT_EQ(rows[6].storage().get(), x.storage().get());
  const std::vector<Tensor> parts = chunk(x, 3);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[2].shape(), "[1, 3]");
}

}  // namespace
}  // namespace lockstep
