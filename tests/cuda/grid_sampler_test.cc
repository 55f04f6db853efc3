#include "core/ops/image/grid_sampler.h"

#include <gtest/gtest.h>

#include "core/ops/pointwise/pointwise.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

Compute sampled(int64_t mode, int64_t padding, bool align_corners) {
  return [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    return {grid_sampler_2d(t[0], t[1], mode, padding, align_corners)};
  };
}

TEST(CudaGridSampler, EveryModeAgreesWithTheCpu) {
  // More points than pixels, many of them outside the image.
  for (int64_t mode = 0; mode < 3; ++mode) {
    for (int64_t padding = 0; padding < 3; ++padding) {
      for (const bool align_corners : {false, true}) {
        SCOPED_TRACE(testing::Message() << mode << padding << align_corners);
        expect_agreement(
            {random_leaf({2, 3, 4, 5}, DType::kF32, 1), random_leaf({2, 7, 6, 2}, DType::kF32, 2)},
            sampled(mode, padding, align_corners));
      }
    }
  }
}

TEST(CudaGridSampler, HalvesAndDoublesAgreeWithTheCpu) {
  for (const DType dtype : {DType::kF64, DType::kBF16, DType::kF16}) {
    expect_agreement({random_leaf({1, 2, 4, 5}, dtype, 1), random_leaf({1, 3, 3, 2}, dtype, 2)},
                     sampled(0, 1, true), 2 * rounding_of(dtype));
  }
}

TEST(CudaGridSampler, WithoutPointsTheGradientIsZero) {
  expect_agreement({random_leaf({1, 2, 4, 5}), random_leaf({1, 0, 3, 2})}, sampled(0, 0, false));
}

}  // namespace
}  // namespace lockstep
