#include "core/ops/attention/rotary.h"

#include <gtest/gtest.h>

#include "core/ops/pointwise/pointwise.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

/// Turns heads that are a slice of a joint projection, and so have gaps between them.
Compute turned(bool inverse) {
  return [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    return {rotary_embedding(t[0].slice(2, 1, 3).transpose(1, 2), t[1], t[2], inverse)};
  };
}

TEST(CudaRotary, HeadsAndGradientsAgreeWithTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const bool inverse : {false, true}) {
      expect_agreement({random_leaf({2, 5, 4, 6}, dtype, 1), random_leaf({5, 3}, dtype, 2),
                        random_leaf({5, 3}, dtype, 3)},
                       turned(inverse));
    }
  }
}

TEST(CudaRotary, HalvesAgreeWithTheCpu) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    expect_agreement({random_leaf({2, 5, 4, 6}, dtype, 1), random_leaf({5, 3}, DType::kF32, 2),
                      random_leaf({5, 3}, DType::kF32, 3)},
                     turned(false), 2 * rounding_of(dtype));
  }
}

TEST(CudaSwiglu, ValuesAndGradientsAgreeWithTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    expect_agreement(
        {random_leaf({3, 70}, dtype, 1), random_leaf({3, 70}, dtype, 2)},
        [](const std::vector<Tensor>& t) -> std::vector<Tensor> { return {swiglu(t[0], t[1])}; },
        2 * rounding_of(dtype));
  }
}

}  // namespace
}  // namespace lockstep
