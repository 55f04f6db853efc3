#include "core/ops/conv/im2col.h"

#include <gtest/gtest.h>

#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

TEST(CudaIm2col, WindowsAndTheirSumsAgreeWithTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    expect_agreement(
        {random_leaf({2, 3, 7, 8}, dtype)},
        [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
          return {im2col(t[0], Dims{3, 2}, Dims{1, 2}, Dims{1, 0}, Dims{2, 1})};
        },
        rounding_of(dtype));
    expect_agreement(
        {random_leaf({2, 12, 6}, dtype)},
        [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
          return {col2im(t[0], Dims{3, 4}, Dims{2, 2}, Dims{1, 1}, Dims{0, 0}, Dims{1, 1})};
        },
        rounding_of(dtype));
  }
}

}  // namespace
}  // namespace lockstep
