#include "core/ops/sort/sort.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "autograd/autograd.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/running_extremes.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

/// Every dtype that holds small integers, signed or unsigned.
const std::vector<DType> kNumbers = {DType::kU8,   DType::kI8,  DType::kI16,
                                     DType::kI32,  DType::kI64, DType::kF16,
                                     DType::kBF16, DType::kF32, DType::kF64};

TEST(Sort, OrdersEveryDtypeAndKeepsTheOrderOfEquals) {
  for (const DType dtype : kNumbers) {
    const auto [values, indices] = sort(tensor_of({3, 1, 2, 1, 3}, dtype));
    EXPECT_EQ(values.dtype(), dtype);
    expect_values(values, {1, 1, 2, 3, 3});
    expect_values(indices, {1, 3, 2, 0, 4});
  }
}

TEST(Sort, KeepsTheOrderOfEqualsWhenDescending) {
  const auto [values, indices] = sort(tensor_of({3, 1, 2, 1, 3}), -1, true);
  expect_values(values, {3, 3, 2, 1, 1});
  expect_values(indices, {0, 4, 2, 1, 3});
}

TEST(Sort, TakesNanAsLargestAndZerosAsEqual) {
  const Tensor x = tensor_of({0.0, kNaN, -kInfinity, -0.0, kInfinity, kNaN});
  const auto [up, up_indices] = sort(x);
  expect_values(up, {-kInfinity, 0, 0, kInfinity, kNaN, kNaN});
  expect_values(up_indices, {2, 0, 3, 4, 1, 5});
  expect_values(std::get<1>(sort(x, 0, true)), {1, 5, 4, 0, 3, 2});
}

TEST(Sort, AgreesWithAStableSortOverLinesOfAnyStride) {
  const Tensor x = random_tensor({40, 3, 70}).transpose(0, 2);
  const auto [sorted, indices] = sort(x, 1);
  for (int64_t i = 0; i < 70; ++i) {
    for (int64_t j = 0; j < 40; ++j) {
      std::vector<double> line = values(x.select(2, j).select(0, i));
      std::stable_sort(line.begin(), line.end());
      expect_values(sorted.select(2, j).select(0, i), line);
    }
  }
}

TEST(Topk, TakesTheLargestOrSmallestInOrder) {
  const Tensor x = tensor_of({4, kNaN, 1, 5, 2});
  const auto [largest, largest_indices] = topk(x, 3);
  expect_values(largest, {kNaN, 5, 4});
  expect_values(largest_indices, {1, 3, 0});
  expect_values(std::get<0>(topk(x, 2, 0, false)), {1, 2});
}

TEST(Topk, ANumberIsItsOwnWhateverK) {
  for (const int64_t k : {0, 1}) {
    const auto [values, indices] = topk(full({}, 5), k);
    expect_near(values, full({}, 5), 0, 0);
    expect_near(indices, full({}, 0), 0, 0);
  }
  EXPECT_EQ(std::get<0>(topk(tensor_of({1, 2}), 0)).numel(), 0);
}

TEST(Topk, OfManyAgreesWithSort) {
  for (const int64_t k : {1, 3, 500, 1000}) {
    const Tensor x = random_tensor({4, 1000});
    expect_near(std::get<0>(topk(x, k)), std::get<0>(sort(x, -1, true)).slice(1, 0, k), 0, 0);
  }
}

TEST(Topk, OfFewAmongManyTakesTheEqualsThatAPartialSortTakes) {
  constexpr int64_t kCount = 200, kFew = 3;
  const auto element = [](int64_t i) { return i * 7 % 5; };
  std::vector<double> elements;
  std::vector<int64_t> order(kCount);
  std::iota(order.begin(), order.end(), 0);
  for (const int64_t i : order) elements.push_back(static_cast<double>(element(i)));
  std::partial_sort(order.begin(), order.begin() + kFew, order.end(),
                    [&](int64_t a, int64_t b) { return element(a) > element(b); });
  const auto [found, indices] = topk(tensor_of(elements), kFew);
  expect_values(found, {4, 4, 4});
  expect_values(indices, std::vector<double>(order.begin(), order.begin() + kFew));
}

TEST(Topk, UnsortedHoldsTheSameElements) {
  const Tensor x = random_tensor({9, 100});
  const Tensor chosen = std::get<0>(topk(x, 30, -1, true, false));
  expect_near(std::get<0>(sort(chosen, -1, true)), std::get<0>(topk(x, 30)), 0, 0);
}

TEST(Kthvalue, AgreesWithSortForEveryRank) {
  const Tensor x = random_tensor({5, 33});
  const Tensor sorted = std::get<0>(sort(x));
  for (int64_t k = 1; k <= 33; ++k) {
    const auto [values, indices] = kthvalue(x, k);
    expect_near(values, sorted.select(1, k - 1), 0, 0);
    for (int64_t row = 0; row < 5; ++row) {
      const int64_t index = indices.data<int64_t>()[row];
      EXPECT_EQ(x.data<float>()[row * 33 + index], values.data<float>()[row]);
    }
  }
}

TEST(Median, IsTheLowerOfTwoAndNanWhenThereIsOne) {
  expect_values(median(tensor_of({4, 1, 3, 2})).reshape({1}), {2});
  expect_values(median(tensor_of({4, kNaN, 3})).reshape({1}), {kNaN});
  expect_values(nanmedian(tensor_of({4, kNaN, 3})).reshape({1}), {3});
  expect_values(median(tensor_of({})).reshape({1}), {kNaN});
  const auto [value, index] = median(tensor_of({4, 1, kNaN, kNaN}), 0);
  EXPECT_EQ(index.item<int64_t>(), 2);
}

TEST(Median, OfNothingIsNanOrTheLeastInteger) {
  EXPECT_TRUE(std::isnan(median(zeros({0})).item<double>()));
  EXPECT_EQ(median(zeros({0}, DType::kI64)).item<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(nanmedian(zeros({0}, DType::kI8)).item<int64_t>(), -128);
}

TEST(Median, SharesItsGradientAmongEquals) {
  const Tensor x = tensor_of({2, 1, 2, 5}).set_requires_grad();
  median(x).backward();
  expect_values(x.grad(), {0.5, 0, 0.5, 0});
}

TEST(Median, SharesItsGradientAmongTheNaNsThatMakeItNaN) {
  const Tensor x = tensor_of({2, kNaN, 1, kNaN}).set_requires_grad();
  mul(median(x), 6).backward();
  expect_values(x.grad(), {0, 3, 0, 3});
  const Tensor all = tensor_of({kNaN, kNaN, kNaN}).set_requires_grad();
  mul(nanmedian(all), 6).backward();
  expect_values(all.grad(), {2, 2, 2});
}

TEST(Nanmedian, GivesNoGradientToNaNs) {
  const Tensor x = tensor_of({2, kNaN, 1, 2, 7}).set_requires_grad();
  mul(nanmedian(x), 6).backward();
  expect_values(x.grad(), {3, 0, 0, 3, 0});
}

TEST(Choosing, RefusesRanksThatDoNotExist) {
  const Tensor x = random_tensor({2, 3});
  EXPECT_THROW(topk(x, 4), IndexError);
  EXPECT_THROW(kthvalue(x, 0), IndexError);
  EXPECT_THROW(kthvalue(x, 4), IndexError);
  EXPECT_THROW(median(zeros({2, 0}), 1), IndexError);
}

TEST(Searchsorted, FindsTheFirstOrTheLastPlace) {
  const Tensor sequence = tensor_of({1, 3, 3, 7});
  const Tensor x = tensor_of({0, 1, 3, 4, 9, kNaN});
  expect_values(searchsorted(sequence, x), {0, 0, 1, 3, 4, 4});
  expect_values(searchsorted(sequence, x, false, true), {0, 1, 3, 3, 4, 4});
  expect_values(bucketize(x, sequence), {0, 0, 1, 3, 4, 4});
  EXPECT_EQ(searchsorted(sequence, x, true).dtype(), DType::kI32);
}

TEST(Searchsorted, SearchesEachRowInItsOwnSequence) {
  const Tensor sequences = tensor_from<float>({1, 2, 3, 10, 20, 30}, {2, 3});
  const Tensor x = tensor_from<float>({2.5f, 0, 15, 31}, {2, 2});
  expect_values(searchsorted(sequences, x).reshape({4}), {2, 0, 1, 3});
}

TEST(Searchsorted, EachRowHasASorterOfItsOwn) {
  const Tensor rows = tensor_of({3, 1, 2, 5, 9, 7}).reshape({2, 3});
  const Tensor sorter = tensor_from<int64_t>({1, 2, 0, 0, 2, 1}, {2, 3});
  const Tensor sought = tensor_of({2, 4, 8, 5}).reshape({2, 2});
  expect_values(searchsorted(rows, sought, false, false, std::nullopt, sorter).flatten(),
                {1, 3, 2, 0});
}

TEST(RunningExtremes, OfNaNsAreTheLastSoFar) {
  const auto [values, indices] = cummax(tensor_of({1, kNaN, 7, kNaN, 2}), 0);
  expect_values(values, {1, kNaN, kNaN, kNaN, kNaN});
  expect_values(indices, {0, 1, 1, 3, 3});
  expect_values(std::get<1>(cummin(tensor_of({1, kNaN, kNaN, 0}), 0)), {0, 1, 2, 2});
  // Of equal elements the last is taken, too.
  expect_values(std::get<1>(cummax(tensor_of({2, 2, 1, 2}), 0)), {0, 1, 1, 3});
}

TEST(Searchsorted, RefusesContradictionsAndOtherShapes) {
  const Tensor sequence = tensor_of({1, 3});
  EXPECT_THROW(searchsorted(sequence, sequence, false, true, "left"), Error);
  EXPECT_THROW(searchsorted(sequence, sequence, false, false, "middle"), Error);
  EXPECT_THROW(searchsorted(zeros({2, 3}), zeros({3, 3})), ShapeError);
}

TEST(Searchsorted, ComparesInTheCommonDtype) {
  const Tensor sequence = tensor_of({1, 3});
  EXPECT_EQ(searchsorted(sequence, tensor_of({1 + 1e-12}, DType::kF64)).item<int64_t>(), 1);
}

TEST(Bincount, CountsAndAddsWeights) {
  const Tensor x = tensor_of({1, 3, 1}, DType::kI32);
  expect_values(bincount(x), {0, 2, 0, 1});
  expect_values(bincount(x, {}, 6), {0, 2, 0, 1, 0, 0});
  const Tensor sums = bincount(x, tensor_of({0.5, 2, 1}));
  EXPECT_EQ(sums.dtype(), DType::kF32);
  expect_values(sums, {0, 1.5, 0, 2});
  EXPECT_THROW(bincount(tensor_of({-1}, DType::kI64)), IndexError);
}

TEST(Median, TakesTheEqualThatSortingPutsInTheMiddle) {
  const auto [value, index] = median(tensor_of({0, -1, 1, 0, 1}), 0);
  EXPECT_EQ(value.item<double>(), 0);
  EXPECT_EQ(index.item<int64_t>(), 3);
}

TEST(Mode, IsTheSmallestOfTheMostFrequentElements) {
  const Tensor x = tensor_of({3, 1, 2, 3, 1}).set_requires_grad();
  const auto [value, index] = mode(x);
  EXPECT_EQ(value.item<double>(), 1);
  EXPECT_EQ(index.item<int64_t>(), 4);
  value.backward();
  expect_values(x.grad(), {0, 0, 0, 0, 1});
  EXPECT_EQ(std::get<0>(mode(tensor_of({kNaN, 2, kNaN, 2}))).item<double>(), 2);
  // A NaN equals nothing, and so is there once, however many there are.
  EXPECT_EQ(std::get<0>(mode(tensor_of({kNaN, 2, kNaN, kNaN, 2}))).item<double>(), 2);
}

}  // namespace
}  // namespace lockstep
