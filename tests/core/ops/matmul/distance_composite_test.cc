#include <cmath>

#include "core/ops/matmul/distance.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(PairwiseDistance, IsTheNormOfTheDifferenceAndAnEpsilon) {
  const Tensor a = tensor_of({1, 2, 3, 4}, DType::kF64).reshape({2, 2});
  const Tensor b = tensor_of({1, 5, 0, 0}, DType::kF64).reshape({2, 2});
  expect_near(pairwise_distance(a, b, 2, 0), tensor_of({3, 5}, DType::kF64), 1e-15, 0);
  expect_near(pairwise_distance(a, b, 1, 0), tensor_of({3, 7}, DType::kF64), 1e-15, 0);
  expect_near(pairwise_distance(a, b, 2, 0.5),
              tensor_of({std::hypot(0.5, 2.5), std::hypot(3.5, 4.5)}, DType::kF64), 1e-15, 0);
  EXPECT_EQ(pairwise_distance(a, b, 2, 0, true).shape(), "[2, 1]");
}

}  // namespace
}  // namespace lockstep
