#include <gtest/gtest.h>

#include "core/ops/norm/norm.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

TEST(CudaGroupNorm, AgreesWithTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    for (const int64_t groups : {1, 2, 6}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", groups " << groups);
      expect_agreement(
          {random_leaf({3, 6, 5, 9}, dtype, 1), random_leaf({6}, dtype, 2),
           random_leaf({6}, dtype, 3)},
          [=](const std::vector<Tensor>& t) {
            return std::vector<Tensor>{group_norm(t[0], groups, t[1], t[2])};
          },
          3 * rounding_of(dtype));
    }
  }
}

TEST(CudaGroupNorm, GroupsLargerThanABlockNeedNoWeights) {
  expect_agreement({random_leaf({2, 4, 300})}, [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{group_norm(t[0], 2)};
  });
}

}  // namespace
}  // namespace lockstep
