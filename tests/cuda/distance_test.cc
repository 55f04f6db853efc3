#include "core/ops/matmul/distance.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

TEST(CudaDistance, OfEveryPairInEveryNorm) {
  for (const double p : {0.0, 1.0, 2.0, 2.5, std::numeric_limits<double>::infinity()}) {
    SCOPED_TRACE(p);
    // Batch dimensions of which one is broadcast.
    expect_agreement({random_leaf({3, 1, 4, 6}, DType::kF32, 1), random_leaf({2, 5, 6})},
                     [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
                       return {cdist(t[0], t[1], p)};
                     });
    expect_agreement(
        {random_leaf({6, 5})},
        [=](const std::vector<Tensor>& t) -> std::vector<Tensor> { return {pdist(t[0], p)}; });
  }
}

TEST(CudaDistance, OfHalvesAndDoubles) {
  for (const DType dtype : {DType::kF64, DType::kBF16, DType::kF16}) {
    expect_agreement(
        {random_tensor({4, 6}, dtype, 1), random_tensor({5, 6}, dtype, 2)},
        [](const std::vector<Tensor>& t) -> std::vector<Tensor> { return {cdist(t[0], t[1])}; },
        rounding_of(dtype));
  }
}

}  // namespace
}  // namespace lockstep
