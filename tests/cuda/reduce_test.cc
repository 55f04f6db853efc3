#include "core/ops/reduce/reduce.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "kernels/cuda/reduce/reduction.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

using cuda::ReduceStrategy;

constexpr DType kInteger[] = {DType::kI64, DType::kI32, DType::kI16,
                              DType::kI8,  DType::kU8,  DType::kBool};

/// Small whole numbers, whose sums are exact in every dtype but the smallest.
Tensor digits(IntList sizes, DType dtype, uint64_t seed = 1) {
  return mul(random_tensor(sizes, DType::kF32, seed), 2).to(DType::kI64).to(dtype);
}

void expect_reductions_of_the_cpu(const Tensor& x, IntList dims, double tolerance) {
  expect_agreement(
      {x},
      [&](const std::vector<Tensor>& t) {
        std::vector<Tensor> results{sum(t[0], dims)};
        if (is_floating(t[0].dtype())) results.push_back(mean(t[0], dims, true));
        results.push_back(amax(t[0], dims));
        results.push_back(amin(t[0], dims, true));
        if (dims.size() == 1) {
          results.push_back(any(t[0], dims[0]));
          results.push_back(all(t[0], dims[0]));
        }
        return results;
      },
      tolerance);
}

TEST(CudaReduce, WaysDependOnTheShape) {
  EXPECT_EQ(cuda::reduce_strategy(1, 8, false), ReduceStrategy::kThread);
  EXPECT_EQ(cuda::reduce_strategy(1, 9, false), ReduceStrategy::kWarp);
  EXPECT_EQ(cuda::reduce_strategy(1, 1025, false), ReduceStrategy::kBlock);
  EXPECT_EQ(cuda::reduce_strategy(64, 1025, true), ReduceStrategy::kColumns);
  EXPECT_EQ(cuda::reduce_strategy(4096, 63, true), ReduceStrategy::kThread);
  EXPECT_EQ(cuda::reduce_strategy(4096, 64, true), ReduceStrategy::kColumns);
}

TEST(CudaReduce, PartsAreNeitherTinyNorLong) {
  EXPECT_EQ(cuda::reduce_chunk(1, 10000, 8192), 8192);
  EXPECT_EQ(cuda::reduce_chunk(2000, 10000, 8192), 10000);
  EXPECT_EQ(cuda::reduce_chunk(1, int64_t{1} << 40, 8192), 64 * 8192);
}

TEST(CudaReduce, RowsOfAnyLengthHaveTheCpusResults) {
  for (const DType dtype : kFloating) {
    for (const int64_t n : {1, 3, 9, 64, 1000, 1025, 9001, 70001}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << n << " elements");
      const Tensor x = random_tensor({3, n}, dtype);
      expect_reductions_of_the_cpu(x, {1}, dtype == DType::kF32 ? 2e-4 : rounding_of(dtype));
    }
  }
  for (const DType dtype : kInteger) {
    for (const int64_t n : {3, 100, 1100, 20001}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << n << " elements");
      expect_reductions_of_the_cpu(digits({3, n}, dtype), {1}, 0);
    }
  }
}

TEST(CudaReduce, ColumnsHaveTheCpusResults) {
  for (const DType dtype : kFloating) {
    for (const int64_t n : {1, 5, 70, 3000}) {
      for (const int64_t width : {8, 33, 64, 300}) {
        SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << n << " x " << width);
        expect_reductions_of_the_cpu(random_tensor({n, width}, dtype), {0}, 5 * rounding_of(dtype));
      }
    }
    expect_reductions_of_the_cpu(random_tensor({2, 100, 3, 40}, dtype), {1},
                                 5 * rounding_of(dtype));
    expect_reductions_of_the_cpu(random_tensor({10, 5000}, dtype), {0}, rounding_of(dtype));
  }
  expect_reductions_of_the_cpu(digits({1000, 50}, DType::kI32), {0}, 0);
}

TEST(CudaReduce, AllElementsAreOneResult) {
  for (const DType dtype : kFloating) {
    const Tensor x = random_tensor({17, 5003}, dtype);
    expect_agreement(
        {x},
        [](const std::vector<Tensor>& t) {
          return std::vector<Tensor>{mean(t[0]), max(t[0]), min(t[0]), any(t[0]), all(t[0])};
        },
        rounding_of(dtype));
  }
  const Tensor x = digits({300, 1000}, DType::kI64);
  expect_agreement({x}, [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{sum(t[0]), max(t[0]), min(t[0]), any(t[0]), all(t[0])};
  });
}

TEST(CudaReduce, SumsOverSeveralPartsAreExactForWholeNumbers) {
  const Tensor x = digits({4, 200000}, DType::kF32);
  expect_agreement(
      {x},
      [](const std::vector<Tensor>& t) {
        return std::vector<Tensor>{sum(t[0]), sum(t[0], {1}), sum(t[0].transpose(0, 1), {0})};
      },
      0);
}

TEST(CudaReduce, AnyStridesMayBeRead) {
  const Tensor x = random_tensor({6, 7, 8, 9});
  for (const auto& dims : std::vector<std::vector<int64_t>>{{0, 2}, {1, 3}, {0, 3}, {0, 1, 2, 3}}) {
    expect_reductions_of_the_cpu(x.transpose(0, 3), dims, 1e-5);
    expect_reductions_of_the_cpu(x.slice(3, 1, 8, 3).transpose(1, 2), dims, 1e-5);
  }
}

TEST(CudaReduce, ReductionsOfNothingHaveTheirNeutralElement) {
  for (const DType dtype : {DType::kF32, DType::kI64}) {
    const Tensor x = digits({3, 0}, dtype);
    expect_agreement({x}, [&](const std::vector<Tensor>& t) {
      std::vector<Tensor> results{sum(t[0], {1}), prod(t[0], 1), any(t[0], 1), all(t[0], 1)};
      if (dtype == DType::kF32) results.push_back(mean(t[0], {1}));
      return results;
    });
  }
}

TEST(CudaReduce, NanWinsAndInfinitiesStay) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t n : {5, 600, 3000}) {
    const Tensor x = random_tensor({3, n});
    x.data<float>()[n / 2] = kNan;
    x.data<float>()[n + 1] = std::numeric_limits<float>::infinity();
    expect_reductions_of_the_cpu(x, {1}, 1e-4);
    expect_reductions_of_the_cpu(x.transpose(0, 1).contiguous(), {0}, 1e-4);
  }
}

TEST(CudaReduce, ProductsDoNotLeaveTheRangeOnTheWay) {
  const Tensor x = random_tensor({2, 3000});
  expect_agreement({x}, [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{prod(mul(t[0], 1e3), 1), prod(t[0].slice(1, 0, 30), 1), prod(t[0])};
  });
  expect_agreement({digits({40, 9}, DType::kI32)}, [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{prod(t[0], 0), prod(t[0], 1)};
  });
}

}  // namespace
}  // namespace lockstep
