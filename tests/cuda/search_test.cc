#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/sort/sort.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

TEST(CudaSearch, PlacesBeforeAndBehindEquals) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI16, DType::kI64}) {
    const Tensor numbers = mul(random_tensor({3, 20}), 3).to(dtype);
    const Tensor values = mul(random_tensor({3, 9}, DType::kF32, 2), 3).to(dtype);
    for (const bool right : {false, true}) {
      expect_agreement(
          {numbers, values},
          [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
            const auto [sequence, order] = sort(t[0]);
            return {searchsorted(sequence, t[1], false, right),
                    searchsorted(t[0], t[1], true, right, {}, order),
                    searchsorted(sequence.select(0, 1), t[1], false, right)};
          },
          0);
    }
  }
}

TEST(CudaSearch, AnOrderWithABadIndexIsReported) {
  const Tensor numbers = random_tensor({4}).to(kGpu);
  const Tensor order = mul(random_tensor({4}), 0).to(DType::kI64);
  order.data<int64_t>()[2] = 9;
  EXPECT_THROW(searchsorted(numbers, numbers, false, false, {}, order.to(kGpu)).to(kCPU), Error);
}

}  // namespace
}  // namespace lockstep
