#include "core/ops/loss/loss.h"

#include <gtest/gtest.h>

#include "core/ops/pointwise/pointwise.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/same_bits.h"

namespace lockstep {
namespace {

constexpr Reduction kReductions[] = {Reduction::kNone, Reduction::kMean, Reduction::kSum};

/// Class indices, one of them ignored.
Tensor targets(int64_t rows, int64_t classes) {
  const Tensor drawn = repeated_indices({rows}, classes);
  drawn.data<int64_t>()[rows / 2] = -100;
  return drawn;
}

TEST(CudaCrossEntropy, AgreesWithTheCpuForAnyNumberOfClasses) {
  for (const DType dtype : kFloating) {
    for (const int64_t classes : {1, 10, 257, 3001}) {
      for (const Reduction reduction : kReductions) {
        SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << classes << " classes, "
                                        << static_cast<int>(reduction));
        expect_agreement(
            {random_leaf({7, classes}, dtype), targets(7, classes)},
            [&](const std::vector<Tensor>& t) {
              return std::vector<Tensor>{cross_entropy_loss(t[0], t[1], {}, reduction)};
            },
            rounding_of(dtype));
      }
    }
  }
}

TEST(CudaCrossEntropy, OfManyRowsIsTheirMean) {
  expect_agreement({random_leaf({3000, 3}), targets(3000, 3)}, [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{cross_entropy_loss(t[0], t[1])};
  });
}

TEST(CudaNllLoss, AgreesWithTheCpuWithAndWithoutWeights) {
  for (const DType dtype : kFloating) {
    const Tensor weight = abs(random_tensor({10}, dtype, 8));
    for (const Reduction reduction : kReductions) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << static_cast<int>(reduction));
      expect_agreement(
          {random_leaf({40, 10}, dtype), targets(40, 10).to(DType::kI32), weight},
          [&](const std::vector<Tensor>& t) {
            return std::vector<Tensor>{nll_loss(t[0], t[1], t[2], reduction)};
          },
          rounding_of(dtype));
      expect_agreement(
          {random_leaf({40, 10}, dtype), targets(40, 10)},
          [&](const std::vector<Tensor>& t) {
            return std::vector<Tensor>{nll_loss(t[0], t[1], {}, reduction)};
          },
          rounding_of(dtype));
    }
  }
}

TEST(CudaCrossEntropy, ATargetOutOfRangeIsThrownWhenTheDeviceIsWaitedFor) {
  const Tensor scores = random_tensor({2, 4}).to(kGpu);
  const Tensor bad = tensor_from<int64_t>({1, -7}, {2}).to(kGpu);
  const Tensor loss = cross_entropy_loss(scores, bad);
  expect_error<Error>([&] { loss.to(kCPU); },
                      "target out of range: expected at least 0 and less than 4, got -7");
}

}  // namespace
}  // namespace lockstep
