// Distributions of the random operators that are composed of others.

#include <set>

#include "core/ops/factory/copy.h"
#include "core/ops/random/random.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

constexpr int64_t kDraws = 1 << 18;

/// Shares of each category among drawn numbers.
Numbers shares(const Tensor& drawn, int64_t categories) {
  Numbers counts(static_cast<size_t>(categories));
  for (const double value : values(drawn)) counts[static_cast<size_t>(value)] += 1;
  for (double& count : counts) count /= static_cast<double>(drawn.numel());
  return counts;
}

TEST(Exponential, HasItsDistribution) {
  constexpr double kRate = 2.5;
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    Generator generator(3);
    const Tensor x = empty({kDraws}, dtype);
    exponential_(x, kRate, &generator);
    // The share of numbers above t is e^(-rate t); its standard deviation is below 0.001 here.
    for (const double t : {0.1, 0.3, 1.0, 2.0}) {
      double above = 0;
      for (const double value : values(x)) above += value > t ? 1 : 0;
      EXPECT_NEAR(above / kDraws, std::exp(-kRate * t), dtype == DType::kBF16 ? 0.008 : 0.004);
    }
    for (const double value : values(x)) {
      if (!(value > 0) || !std::isfinite(value)) FAIL() << value;
    }
  }
}

TEST(Exponential, TakesPositiveRatesOfFloats) {
  const Tensor x = empty({3});
  expect_error<Error>([&] { exponential_(x, 0); }, "[exponential]", "positive");
  expect_error<DTypeError>([&] { exponential_(empty({3}, DType::kI64)); }, "int64");
}

TEST(Multinomial, DrawsByWeight) {
  const Tensor weights = tensor_of({1, 0, 3, 4, 0});
  for (const bool replacement : {true, false}) {
    Generator generator(5);
    const Tensor drawn = replacement
                             ? multinomial(weights, kDraws, true, &generator)
                             : multinomial(weights.expand({kDraws, 5}), 1, false, &generator);
    const Numbers found = shares(drawn, 5), wanted{0.125, 0, 0.375, 0.5, 0};
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(found[i], wanted[i], wanted[i] == 0 ? 0 : 0.005) << i;
    }
  }
}

TEST(Multinomial, WithoutReplacementDrawsEachOnce) {
  Generator generator(7);
  const Tensor drawn = multinomial(rand({1000, 9}, {}, &generator), 5, false, &generator);
  EXPECT_EQ(drawn.dtype(), DType::kI64);
  for (int64_t row = 0; row < 1000; ++row) {
    const Numbers categories = values(drawn.select(0, row));
    EXPECT_EQ(std::set<double>(categories.begin(), categories.end()).size(), 5U);
  }
}

TEST(Multinomial, SecondDrawsAreByTheWeightsThatAreLeft) {
  Generator generator(11);
  const Tensor drawn = multinomial(tensor_of({1, 2, 5}).expand({kDraws, 3}), 2, false, &generator);
  double both = 0, first = 0;
  for (int64_t row = 0; row < kDraws; ++row) {
    const int64_t* pair = drawn.data<int64_t>() + 2 * row;
    first += pair[0] == 2 ? 1 : 0;
    both += pair[0] == 2 && pair[1] == 1 ? 1 : 0;
  }
  EXPECT_NEAR(both / first, 2.0 / 3, 0.005);
}

TEST(Multinomial, RefusesWeightsThatAreNone) {
  expect_error<Error>([] { multinomial(tensor_of({1, -1}), 1); }, "[multinomial]", "negative");
  expect_error<Error>([] { multinomial(zeros({2, 3}), 1); }, "sum of 0");
  expect_error<Error>([] { multinomial(ones({3}), 4); }, "4");
  expect_error<ShapeError>([] { multinomial(ones({}), 1); }, "[multinomial]");
  expect_error<DTypeError>([] { multinomial(ones({3}, DType::kI64), 1); }, "int64");
}

}  // namespace
}  // namespace lockstep
