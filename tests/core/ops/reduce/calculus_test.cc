#include "core/ops/reduce/calculus.h"

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce_composite.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Trapezoid, IntegratesAPolygonExactly) {
  const Tensor y = tensor_of({1, 3, 2});
  EXPECT_EQ(values(trapezoid(y)), (Numbers{4.5}));
  EXPECT_EQ(values(trapezoid(y, 2.0)), (Numbers{9}));
  EXPECT_EQ(values(trapezoid(y, tensor_of({0, 1, 4}))), (Numbers{9.5}));
  EXPECT_EQ(values(cumulative_trapezoid(y, tensor_of({0, 1, 4}))), (Numbers{2, 9.5}));
  EXPECT_EQ(trapezoid(counting({3, 0})).shape(), "[3]");
  EXPECT_EQ(values(trapezoid(counting({2, 0}))), (Numbers{0, 0}));
}

TEST(Trapezoid, RefusesBoolsAndPointsThatDoNotFit) {
  const Tensor y = counting({2, 3});
  expect_error<ShapeError>([&] { trapezoid(y, tensor_of({1, 2})); }, "[trapezoid]");
  expect_error<DTypeError>([&] { trapezoid(y.to(DType::kBool)); }, "[trapezoid]");
  expect_error<IndexError>([&] { cumulative_trapezoid(y.sum()); }, "[cumulative_trapezoid]");
}

TEST(Gradient, IsExactForALineAndForAParabolaInside) {
  const Tensor x = counting({5});
  EXPECT_EQ(values(gradient(x * 3.0, 0.5, {0})[0]), (Numbers{6, 6, 6, 6, 6}));
  EXPECT_EQ(values(gradient(square(x), 1, {0})[0]), (Numbers{1, 2, 4, 6, 7}));
  EXPECT_EQ(values(gradient(square(x), 1, {0}, 2)[0]), (Numbers{0, 2, 4, 6, 8}));
  expect_error<ShapeError>([&] { gradient(tensor_of({1, 2}), 1, {0}, 2); }, "[gradient]");
  expect_error<Error>([&] { gradient(x, 1, {0}, 3); }, "[gradient]");
}

TEST(Nansum, CountsNanAsNothing) {
  const Tensor x = tensor_of({1, kNaN, 2, kNaN, kNaN, kInfinity}).view({3, 2});
  expect_values(nansum(x, {1}), {1, 2, kInfinity});
  expect_values(nanmean(x, {1}), {1, 2, kInfinity});
  expect_values(nanmean(tensor_of({kNaN})).reshape({1}), {kNaN});
  expect_error<DTypeError>([] { nanmean(counting({2}, DType::kI64)); }, "[nanmean]");
}

TEST(Aminmax, ThrowsForNoElements) {
  expect_error<IndexError>([] { aminmax(tensor_of({})); });
  const auto [least, most] = aminmax(tensor_of({2, -1, 5}));
  EXPECT_EQ(least.item<float>(), -1);
  EXPECT_EQ(most.item<float>(), 5);
}

TEST(Renorm, ShrinksOnlyLongSlices) {
  const Tensor x = tensor_of({3, 4, 0.3, 0.4}).view({2, 2});
  expect_near(renorm(x, 2, 0, 1), tensor_of({0.6, 0.8, 0.3, 0.4}).view({2, 2}), 0, 1e-6);
  EXPECT_EQ(values(renorm(x, 2, 0, kInfinity)), values(x));
  expect_error<ShapeError>([&] { renorm(tensor_of({1}), 2, 0, 1); }, "[renorm]");
  expect_error<Error>([&] { renorm(x, 0, 0, 1); }, "[renorm]");
  expect_error<Error>([&] { renorm(x, 2, 0, -1); }, "[renorm]");
}

TEST(Allclose, SeesOneDifferentElement) {
  const Tensor x = tensor_of({1, kNaN});
  EXPECT_FALSE(allclose(x, x));
  EXPECT_TRUE(allclose(x, x, 1e-5, 1e-8, true));
  EXPECT_FALSE(allclose(tensor_of({1, 2}), tensor_of({1, 2.1})));
  EXPECT_TRUE(allclose(tensor_of({1, 2}), tensor_of({1, 2.1}), 0.1));
}

}  // namespace
}  // namespace lockstep
