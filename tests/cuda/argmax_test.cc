#include <gtest/gtest.h>

#include <limits>

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

std::vector<Tensor> taken(const Tensor& x, int64_t dim) {
  const auto [largest, at_largest] = max(x, dim);
  const auto [smallest, at_smallest] = min(x, dim, true);
  return {largest, at_largest, smallest, at_smallest, argmax(x, dim), argmin(x), argmax(x)};
}
void expect_taken_as_by_the_cpu(const Tensor& x, int64_t dim) {
  expect_agreement(
      {x}, [&](const std::vector<Tensor>& t) { return taken(t[0], dim); }, 0);
}

TEST(CudaArgmax, TakesWhatTheCpuTakesInEveryDtypeAndWay) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kI64,
                            DType::kI32, DType::kU8, DType::kBool}) {
    // Few distinct values, so that ties show whether the first of equals is taken.
    for (const int64_t n : {1, 4, 40, 2000, 20000}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << n << " elements");
      const Tensor x = mul(random_tensor({3, n}), 2).to(DType::kI64).to(dtype);
      expect_taken_as_by_the_cpu(x, 1);
      expect_taken_as_by_the_cpu(x.transpose(0, 1).contiguous().view({n, 3}), 0);
    }
    expect_taken_as_by_the_cpu(mul(random_tensor({2, 600, 40}), 2).to(DType::kI64).to(dtype), 1);
  }
}

TEST(CudaArgmax, TheFirstNanIsTaken) {
  for (const int64_t n : {6, 500, 9000}) {
    const Tensor x = random_tensor({2, n});
    float* const data = x.data<float>();
    data[n / 2] = data[n - 1] = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(data + n, n, -std::numeric_limits<float>::infinity());
    expect_taken_as_by_the_cpu(x, 1);
  }
}

}  // namespace
}  // namespace lockstep
