#include <gtest/gtest.h>

#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/same_bits.h"

namespace lockstep {
namespace {

Tensor random_mask(IntList sizes, double p) {
  Generator generator(9);
  const Tensor mask = zeros(sizes, DType::kBool);
  bernoulli_(mask, p, &generator);
  return mask;
}

TEST(CudaNonzero, NamesElementsInOrder) {
  for (const double p : {0.0, 0.3, 1.0}) {
    for (const Dims& sizes : {Dims{5000}, Dims{7, 300, 3}, Dims{0, 4}, Dims{}}) {
      expect_same_bits({random_mask(sizes, p)}, [](const std::vector<Tensor>& t) {
        return std::vector<Tensor>{nonzero(t[0]), nonzero(t[0].to(DType::kBF16))};
      });
    }
  }
  expect_same_bits({random_mask({30, 40}, 0.4)}, [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{nonzero(t[0].transpose(0, 1))};
  });
}

TEST(CudaMaskedSelect, ReadsElementsInOrder) {
  for (const DType dtype : kDtypesOfEverySize) {
    expect_same_bits({repeated_indices({70, 1, 60}, 99).to(dtype), random_mask({5, 60}, 0.4)},
                     [](const std::vector<Tensor>& t) {
                       return std::vector<Tensor>{masked_select(t[0], t[1])};
                     });
  }
}

TEST(CudaMaskedScatter, WritesElementsInOrder) {
  for (const DType dtype : kDtypesOfEverySize) {
    expect_same_bits({repeated_indices({70, 60}, 99).to(dtype), random_mask({60}, 0.4),
                      repeated_indices({5000}, 99, 6).to(dtype)},
                     [](const std::vector<Tensor>& t) {
                       return std::vector<Tensor>{masked_scatter(t[0], t[1], t[2])};
                     });
  }
}

TEST(CudaMaskedScatter, ASourceThatIsTooShortIsThrownWhenTheDeviceIsWaitedFor) {
  const Tensor self = random_tensor({10}).to(kGpu);
  const Tensor all = ones({10}, {DType::kBool, kGpu});
  const Tensor written = masked_scatter(self, all, ones({7}, {DType::kF32, kGpu}));
  expect_error<Error>([&] { written.to(kCPU); },
                      "[masked_scatter] the source is too short to fill the mask: expected at "
                      "least 10");
}

TEST(CudaEqual, ComparesNumbers) {
  for (const DType dtype : kDtypesOfEverySize) {
    const Tensor x = repeated_indices({30, 40}, 99).to(dtype).to(kGpu);
    const Tensor y = x.transpose(0, 1).contiguous().transpose(0, 1);
    EXPECT_TRUE(equal(x, y)) << to_string(dtype);
    y.select(0, 29).select(0, 39).fill_(100);
    EXPECT_FALSE(equal(x, y)) << to_string(dtype);
  }
  const auto number = [](double value) { return full({1}, value, {DType::kF32, kGpu}); };
  EXPECT_TRUE(equal(number(0.0), number(-0.0)));
  EXPECT_TRUE(equal(number(0.5), number(0.5).to(DType::kF64)));
  EXPECT_FALSE(equal(number(0.1), number(0.1).to(DType::kBF16)));
  EXPECT_FALSE(equal(number(NAN), number(NAN)));
}

}  // namespace
}  // namespace lockstep
