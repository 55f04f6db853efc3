#include <gtest/gtest.h>

#include <limits>

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/non_finite.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

std::vector<Tensor> moments(const Tensor& x, IntList dims) {
  const auto [variance, average] = var_mean(x, dims, 0);
  return {variance, average, var(x, dims), std(x, dims, 2, true), logsumexp(x, dims)};
}
std::vector<Tensor> norms(const Tensor& x, IntList dims) {
  std::vector<Tensor> results;
  for (const double p : {0.0, 1.0, 2.0, 3.5, kInfinity, -kInfinity}) {
    results.push_back(linalg_vector_norm(x, p, dims));
  }
  return results;
}

TEST(CudaMoments, AgreeWithTheCpuForRowsAndColumns) {
  for (const DType dtype : kFloating) {
    for (const int64_t n : {3, 100, 2000, 20001}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << n << " elements");
      const Tensor x = random_tensor({3, n}, dtype);
      const auto both = [&](const std::vector<Tensor>& t) {
        std::vector<Tensor> results = moments(t[0], {1});
        for (Tensor& result : norms(t[0], {1})) results.push_back(result);
        return results;
      };
      expect_agreement({x}, both, rounding_of(dtype));
    }
    const Tensor x = random_tensor({500, 40}, dtype);
    const auto of_columns = [](const std::vector<Tensor>& t) { return moments(t[0], {0}); };
    expect_agreement({x}, of_columns, rounding_of(dtype));
    const auto norms_of_columns = [](const std::vector<Tensor>& t) { return norms(t[0], {0}); };
    expect_agreement({x}, norms_of_columns, rounding_of(dtype));
  }
}

TEST(CudaMoments, AnyStridesAreReadAndDigitsAreKept) {
  const Tensor x = add(mul(random_tensor({5, 6, 7}), 1e-3), 1e3);
  expect_agreement({x.transpose(0, 2)}, [](const std::vector<Tensor>& t) {
    return moments(t[0], {0, 2});
  });
}

TEST(CudaMoments, OfNothingThereAreNone) {
  expect_agreement({random_tensor({3, 0})}, [](const std::vector<Tensor>& t) {
    const auto [variance, average] = var_mean(t[0], {1});
    return std::vector<Tensor>{variance, average, linalg_vector_norm(t[0], 2, {1}),
                               logsumexp(t[0], {1})};
  });
}

TEST(CudaMoments, InfinitiesAndNanAreThoseOfTheCpu) {
  const Tensor x = random_tensor({5, 30});
  float* const rows = x.data<float>();
  std::fill_n(rows, 30, -std::numeric_limits<float>::infinity());
  rows[30 + 7] = std::numeric_limits<float>::infinity();
  rows[60 + 29] = std::numeric_limits<float>::quiet_NaN();
  rows[90] = -std::numeric_limits<float>::infinity();
  expect_agreement({x}, [](const std::vector<Tensor>& t) { return moments(t[0], {1}); });
  expect_agreement({x}, [](const std::vector<Tensor>& t) { return norms(t[0], {1}); });
}

}  // namespace
}  // namespace lockstep
