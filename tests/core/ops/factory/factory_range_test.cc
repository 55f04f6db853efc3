#include <algorithm>

#include "core/ops/factory/factory.h"
#include "core/ops/forms/factory.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, DType dtype = DType::kF32) {
  return linspace_out(empty({std::max<int64_t>(steps, 0)}, dtype), start, end, steps).clone();
}
Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base = 10,
                DType dtype = DType::kF32) {
  return logspace_out(empty({steps}, dtype), start, end, steps, base).clone();
}

TEST(Linspace, HasBothEndsExactly) {
  expect_values(linspace(0, 1, 5), {0, 0.25, 0.5, 0.75, 1});
  expect_values(linspace(3, -1, 3), {3, 1, -1});
  expect_values(linspace(2.5, 7, 1), {2.5});
  EXPECT_EQ(linspace(2.5, 7, 0).shape(), "[0]");
  // Steps are counted from the nearer end: a sum of 11 steps would miss the last number.
  const Numbers tenths = values(linspace(0.1, 0.9, 12, DType::kF64));
  EXPECT_EQ(tenths.front(), 0.1);
  EXPECT_EQ(tenths.back(), 0.9);
  EXPECT_NEAR(tenths[6], 0.1 + 6 * (0.8 / 11), 1e-15);
}

TEST(Linspace, OfIntegersTruncatesItsEndsAndItsElements) {
  expect_values(linspace(0, 10, 4, DType::kI64), {0, 3, 6, 10});
  expect_values(linspace(1.9, 4.9, 4, DType::kI64), {1, 2, 3, 4});
  expect_values(linspace(-1, 1, 4, DType::kI64), {-1, 0, 0, 1});
  EXPECT_EQ(values(linspace(0, 15, 12, DType::kI64)).back(), 15);
  expect_error<ShapeError>([] { linspace(0, 1, -1); }, "[linspace]");
  expect_error<DTypeError>([] { linspace(0, 1, 2, DType::kBool); }, "[linspace]");
}

TEST(Logspace, IsTheBaseToThePowersOfEvenlySpacedNumbers) {
  expect_near(logspace(-2, 2, 5), tensor_of({0.01, 0.1, 1, 10, 100}), 0, 1e-6);
  expect_values(logspace(0, 3, 4, 2), {1, 2, 4, 8});
  expect_values(logspace(0, 3, 4, 2, DType::kI64), {1, 2, 4, 8});
  expect_near(logspace(0.5, 9, 1, 4), tensor_of({2}), 0, 1e-6);
}

TEST(Eye, HasOnesOnItsDiagonal) {
  expect_values(eye_out(empty({3, 3}), 3).flatten(), {1, 0, 0, 0, 1, 0, 0, 0, 1});
  expect_values(eye_out(empty({2, 3}), 2, 3).flatten(), {1, 0, 0, 0, 1, 0});
  expect_values(eye_out(empty({3, 2}), 3, 2).flatten(), {1, 0, 0, 1, 0, 0});
}

}  // namespace
}  // namespace lockstep
