#include "core/ops/sort/sort.h"

#include <gtest/gtest.h>

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "kernels/cuda/sort/sort.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

/// Few distinct numbers, so that many are equal.
Tensor with_ties(IntList sizes, DType dtype) { return mul(random_tensor(sizes), 2).to(dtype); }

Compute sorted(int64_t dim, bool descending) {
  return [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    const auto [values, indices] = sort(t[0], dim, descending);
    return {values, indices};
  };
}

TEST(CudaSort, EqualElementsKeepTheirOrder) {
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kI32, DType::kI64, DType::kBool}) {
    for (const int64_t dim : {0, 1, 2}) {
      for (const bool descending : {false, true}) {
        expect_agreement({with_ties({3, 40, 5}, dtype)}, sorted(dim, descending), 0);
      }
    }
  }
}

TEST(CudaSort, FloatsOfEachWidthWithNotANumberLast) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    Tensor x = random_tensor({2, 33});
    x.data<float>()[5] = x.data<float>()[40] = std::nanf("");
    x.data<float>()[6] = -0.0F;
    x.data<float>()[7] = 0.0F;
    expect_agreement({x.to(dtype)}, sorted(1, false), 0);
    expect_agreement({x.to(dtype)}, sorted(1, true), 0);
  }
}

TEST(CudaSort, LinesLongerThanABlockSorts) {
  // A line whose padding exceeds a whole chunk, so that there are several passes.
  const int64_t n = 2 * cuda::Sort::kChunk + 100;
  expect_agreement({with_ties({2, n}, DType::kI32)}, sorted(1, false), 0);
  expect_agreement({random_leaf({n})}, sorted(0, true), 0);
}

TEST(CudaSort, FirstOfShortLinesAreThoseOfTheCpu) {
  for (const int64_t k : {1, 3, 12}) {
    for (const bool largest : {false, true}) {
      expect_agreement(
          {with_ties({4, 100, 3}, DType::kF32)},
          [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
            const auto [values, indices] = topk(t[0], k, 1, largest, true);
            return {values, indices};
          },
          0);
    }
  }
}

TEST(CudaSort, FirstOfLongLines) {
  expect_agreement(
      {random_leaf({2, 1000})},
      [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
        const auto [values, indices] = topk(t[0], 7, 1);
        return {values, indices};
      },
      0);
}

TEST(CudaSort, ElementsOfARank) {
  for (const int64_t n : {1, 9, 100, 300}) {
    Tensor x = random_leaf({3, n});
    expect_agreement(
        {x},
        [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
          const auto [values, indices] = kthvalue(t[0], (n + 2) / 3, 1);
          return {values, indices};
        },
        0);
  }
  expect_agreement(
      {with_ties({3, 200}, DType::kI32)},
      [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
        const auto [values, indices] = kthvalue(t[0], 50, 1);
        return {values, indices};
      },
      0);
}

TEST(CudaSort, MediansWithAndWithoutNotANumber) {
  Tensor x = random_tensor({4, 21});
  for (const int i : {3, 25, 30}) x.data<float>()[i] = std::nanf("");
  for (int i = 63; i < 84; ++i) x.data<float>()[i] = std::nanf("");
  expect_agreement(
      {x},
      [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
        const auto [a, b] = median(t[0], 1);
        const auto [c, d] = nanmedian(t[0], 1);
        return {a, b, c, d, median(t[0]), nanmedian(t[0])};
      },
      0);
}

TEST(CudaSort, MediansOfNothing) {
  for (const DType dtype : {DType::kF32, DType::kI8, DType::kU8, DType::kI64}) {
    expect_agreement(
        {empty({0}, {dtype})},
        [](const std::vector<Tensor>& t) -> std::vector<Tensor> { return {median(t[0])}; }, 0);
  }
}

TEST(CudaSort, TheMostFrequentElement) {
  expect_agreement(
      {with_ties({5, 15}, DType::kI32)},
      [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
        const auto [values, indices] = mode(t[0], 1);
        return {values, indices};
      },
      0);
  expect_agreement(
      {with_ties({200}, DType::kI32)},
      [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
        return {std::get<0>(mode(t[0], 0))};
      },
      0);
}

}  // namespace
}  // namespace lockstep
