#include "core/ops/factory/factory.h"

#include <gtest/gtest.h>

#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "tests/cuda/same_bits.h"

namespace lockstep {
namespace {

TEST(CudaFactories, MakeWhatTheCpuMakes) {
  for (const DType dtype : kDtypesOfEveryKind) {
    for (const int64_t count : {1, 15, 1003}) {
      const auto made = [&](Device device) {
        const TensorOptions options(dtype, device);
        return std::vector<Tensor>{zeros({count}, options), ones({count, 2}, options),
                                   full({count}, 2.5, options), full({count}, -0.0, options)};
      };
      const std::vector<Tensor> got = made(kGpu), want = made(kCPU);
      for (size_t i = 0; i < want.size(); ++i) expect_equal_bits(got[i], want[i]);
    }
  }
}

TEST(CudaFactories, ZerosAreWrittenWhereverTheyLie) {
  for (const int64_t first : {0, 1, 5}) {
    for (const int64_t last : {6, 40, 41}) {
      expect_same_bits({ones({64}, DType::kU8)}, [&](const std::vector<Tensor>& t) {
        const Tensor copy = t[0].clone();
        copy.slice(0, first, last).zero_();
        return std::vector<Tensor>{copy};
      });
    }
  }
}

TEST(CudaArange, CountsAsTheCpuDoes) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI64, DType::kBF16}) {
    const auto made = [&](Device device) {
      const TensorOptions options(dtype, device);
      return std::vector<Tensor>{arange(0, 300, 1, options), arange(5, -7, -2, options),
                                 arange(0.25, 20, 0.3, options)};
    };
    const std::vector<Tensor> got = made(kGpu), want = made(kCPU);
    for (size_t i = 0; i < want.size(); ++i) expect_equal_bits(got[i], want[i]);
  }
}

TEST(CudaShape, PartsAreJoinedWrittenAndTurned) {
  for (const DType dtype : kDtypesOfEveryKind) {
    const Tensor a = repeated_indices({3, 4, 5}, 100).to(dtype);
    const Tensor b = repeated_indices({3, 2, 5}, 100, 6).to(dtype);
    expect_same_bits({a, b}, [](const std::vector<Tensor>& t) {
      return std::vector<Tensor>{cat({t[0], t[1], t[0].slice(1, 0, 0), t[1]}, 1),
                                 cat({t[0].transpose(0, 1), t[1].transpose(0, 1)}, 0),
                                 slice_scatter(t[0], t[1], 1, 0, 4, 2),
                                 diagonal_scatter(t[0], diagonal(t[1], 0, 0, 1), -1),
                                 flip(t[0], {0, 2})};
    });
  }
}

TEST(CudaItem, IsTheNumberOfEveryDtype) {
  for (const DType dtype : kDtypesOfEveryKind) {
    const Tensor x = repeated_indices({4}, 2).to(dtype);
    EXPECT_EQ(x.to(kGpu).select(0, 3).item_scalar().to_double(),
              x.select(0, 3).item_scalar().to_double())
        << to_string(dtype);
  }
}

}  // namespace
}  // namespace lockstep
