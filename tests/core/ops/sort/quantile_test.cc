#include "core/ops/sort/quantile.h"

#include "autograd/autograd.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/membership.h"
#include "core/ops/sort/running_extremes.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Quantile, InterpolatesAsAsked) {
  const Tensor x = tensor_of({4, 1, 3, 2}), q = tensor_of({0, 0.5, 0.75, 1});
  expect_values(quantile(x, q), {1, 2.5, 3.25, 4});
  expect_values(quantile(x, q, 0, false, "lower"), {1, 2, 3, 4});
  expect_values(quantile(x, q, 0, false, "higher"), {1, 3, 4, 4});
  expect_values(quantile(x, q, 0, false, "midpoint"), {1, 2.5, 3.5, 4});
  // 1.5 lies between two ranks and goes to the even one.
  expect_values(quantile(x, q, 0, false, "nearest"), {1, 3, 3, 4});
  expect_values(quantile(tensor_of({10, 20}), tensor_of({0.5}), 0, false, "nearest"), {10});
}

TEST(Quantile, IsNanWhereThereIsANanAndNanquantileIgnoresIt) {
  const Tensor x = tensor_of({1, kNaN, 3, 5, 7, 9}).view({2, 3});
  const Tensor q = tensor_of({0.5}).reshape({});
  expect_values(quantile(x, q, 1), {kNaN, 7});
  expect_values(nanquantile(x, q, 1), {2, 7});
  for (const char* const mode : {"linear", "lower", "higher", "midpoint", "nearest"}) {
    const Tensor of_nan = tensor_of({kNaN, kNaN, kNaN});
    expect_values(nanquantile(of_nan, tensor_of({0, 0.7, 1}), 0, false, mode), {kNaN, kNaN, kNaN});
  }
}

TEST(Quantile, PutsAVectorOfQuantilesFirst) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(quantile(x, tensor_of({0.1, 0.2}), 1).shape(), "[2, 2, 4]");
  EXPECT_EQ(quantile(x, tensor_of({0.1, 0.2}), 1, true).shape(), "[2, 2, 1, 4]");
  EXPECT_EQ(quantile(x, tensor_of({0.1}).reshape({}), std::nullopt, true).shape(), "[1, 1, 1]");
}

TEST(Quantile, RefusesWhatItDoesNotKnow) {
  const Tensor x = tensor_of({1, 2}), q = tensor_of({0.5});
  expect_error<Error>([&] { quantile(x, tensor_of({1.5})); }, "[quantile]", "between 0 and 1");
  expect_error<Error>([&] { quantile(x, tensor_of({kNaN})); }, "[quantile]");
  expect_error<Error>([&] { quantile(x, q, 0, false, "cubic"); }, "\"cubic\"");
  expect_error<DTypeError>([&] { quantile(x, q.to(DType::kF64)); }, "[quantile]");
  expect_error<ShapeError>([&] { nanquantile(tensor_of({}), q); }, "[nanquantile]");
}

TEST(Histogram, CountsInsideItsRangeWithBothEnds) {
  const Tensor x = tensor_of({0, 0.5, 1, 1.5, 2, kNaN, -1, 3});
  expect_values(histc(x, 2, 0, 2), {2, 3});
  expect_values(histc(tensor_of({1, 2, 3, 4}), 3), {1, 1, 2});
  expect_values(histc(tensor_of({5, 5}), 4), {0, 0, 2, 0});  // from 4 to 6
  expect_values(histc(tensor_of({}), 2), {0, 0});
  expect_error<Error>([&] { histc(x, 2); }, "[histc]", "finite");
  expect_error<Error>([&] { histc(x, 2, 3, 1); }, "[histc]");
}

TEST(RunningExtremes, TakeTheLastOfEqualsAndStayAtNan) {
  const auto [most, most_at] = cummax(tensor_of({1, 3, 3, 2, kNaN, 5, kNaN}), 0);
  expect_values(most, {1, 3, 3, 3, kNaN, kNaN, kNaN});
  expect_values(most_at, {0, 1, 2, 2, 4, 4, 6});
  const auto [least, least_at] = cummin(tensor_of({2, 1, 1, 4}, DType::kI8), 0);
  expect_values(least, {2, 1, 1, 1});
  expect_values(least_at, {0, 1, 2, 2});
}

TEST(Isin, ComparesInTheCommonDtypeAndNeverFindsNan) {
  expect_values(isin(tensor_of({1, kNaN, kInfinity}), tensor_of({kNaN, kInfinity})), {0, 0, 1});
  expect_values(isin(tensor_of({1, kNaN}), tensor_of({kNaN}), true), {1, 1});
  expect_values(isin(tensor_of({1, 2}, DType::kI64), tensor_of({2, 2.5})), {0, 1});
  // 300 is not 44, though uint8 would hold it as that.
  const Tensor bytes = tensor_of({44}, DType::kU8);
  expect_values(isin(bytes, tensor_of({300}, DType::kI64).reshape({})), {0});
  expect_values(isin(bytes, tensor_of({}, DType::kI64)), {0});
}

}  // namespace
}  // namespace lockstep
