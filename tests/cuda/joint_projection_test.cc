// Operators of joint projections, whose weights lie side by side in memory or apart.

#include <gtest/gtest.h>

#include "autograd/grad_mode.h"
#include "core/ops/attention/rotary.h"
#include "core/ops/matmul/linear_of_parts.h"
#include "core/ops/pointwise/swiglu_of_halves.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

TEST(CudaJointProjection, ProductsAgreeWithTheCpuWhereverTheWeightsLie) {
  for (const bool beside : {false, true}) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
      SCOPED_TRACE(beside);
      expect_agreement(
          {random_leaf({2, 5, 12}, dtype, 1), random_leaf({24, 12}, dtype, 2),
           random_leaf({8, 12}, dtype, 3)},
          [&](const std::vector<Tensor>& t) -> std::vector<Tensor> {
            const std::vector<Tensor> weights = {t[1], t[2]};
            if (beside) {
              const NoGradGuard no_grad;
              lay_side_by_side(weights);
            }
            return {linear_of_parts(t[0], weights)};
          },
          4 * rounding_of(dtype));
    }
  }
}

TEST(CudaJointProjection, RotaryPositionsAgreeWithTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool inverse : {false, true}) {
      expect_agreement(
          {random_leaf({2, 5, 7 * 6}, dtype, 1), random_leaf({5, 3}, DType::kF32, 2),
           random_leaf({5, 3}, DType::kF32, 3)},
          [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
            return {rotary_of_qkv(t[0], t[1], t[2], 3, 2, inverse)};
          },
          2 * rounding_of(dtype));
    }
  }
}

TEST(CudaJointProjection, SwigluOfHalvesAgreesWithTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    expect_agreement(
        {random_leaf({3, 5, 140}, dtype, 1)},
        [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
          return {swiglu_of_halves(t[0])};
        },
        2 * rounding_of(dtype));
  }
}

}  // namespace
}  // namespace lockstep
