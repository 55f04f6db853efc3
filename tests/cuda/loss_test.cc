#include <gtest/gtest.h>

#include "core/ops/loss/linear_cross_entropy.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/same_bits.h"
#include "tests/emulation/fake_cublas_lt.h"

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

/// Compares losses and gradients of every dtype by chunks of several sizes.
void agree_for_any_chunks() {
  for (const DType dtype : kFloating) {
    for (const int64_t chunk_rows : {3, 7}) {
      for (const Reduction reduction : {Reduction::kMean, Reduction::kSum}) {
        SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << chunk_rows << ", "
                                        << static_cast<int>(reduction));
        expect_agreement(
            {random_tensor({7, 20}, dtype), random_tensor({257, 20}, dtype, 2), targets(7, 257)},
            [&](const std::vector<Tensor>& t) {
              const auto [loss, of_input, of_weight] = linear_cross_entropy_by_chunks(
                  t[0], t[1], t[2], reduction, -100, chunk_rows, {true, true});
              return std::vector<Tensor>{loss, of_input, of_weight};
            },
            rounding_of(dtype));
      }
    }
  }
}

TEST(CudaLinearCrossEntropy, AgreesWithTheCpuForAnyChunksWithAndWithoutCublasLt) {
  using cuda::CublasLtScope;
  for (const auto library : {CublasLtScope::Library::kPresent, CublasLtScope::Library::kMissing}) {
    const CublasLtScope scope(library);
    agree_for_any_chunks();
    EXPECT_TRUE(cuda::fake_cublas_lt_books().misuse.empty());
  }
}

TEST(CudaLinearCrossEntropy, ReadsLongRowsOnceWithTheCpusResults) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const int64_t classes :
         {8, 13, 16400, 20001, 60000}) {  // the last does not fit twice in f32
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << classes << " classes");
      expect_agreement(
          {random_tensor({3, 4}, dtype), random_tensor({classes, 4}, dtype, 2),
           targets(3, classes)},
          [](const std::vector<Tensor>& t) {
            const auto [loss, of_input, of_weight] = linear_cross_entropy_by_chunks(
                t[0], t[1], t[2], Reduction::kSum, -100, 2, {true, true});
            return std::vector<Tensor>{loss, of_input, of_weight};
          },
          2 * rounding_of(dtype));
    }
  }
}

TEST(CudaLinearCrossEntropy, HasTheCpusGradientsAndLossOfEachRow) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    SCOPED_TRACE(to_string(dtype));
    const std::vector<Tensor> arguments = {random_leaf({9, 16}, dtype),
                                           random_leaf({40, 16}, dtype, 2), targets(9, 40)};
    expect_agreement(
        arguments,
        [](const std::vector<Tensor>& t) {
          return std::vector<Tensor>{linear_cross_entropy(t[0], t[1], t[2])};
        },
        rounding_of(dtype));
    expect_agreement(
        {arguments[0].detach(), arguments[1].detach(), arguments[2]},
        [](const std::vector<Tensor>& t) {
          return std::vector<Tensor>{linear_cross_entropy(t[0], t[1], t[2], Reduction::kNone)};
        },
        rounding_of(dtype));
  }
}

TEST(CudaLinearCrossEntropy, OfNoRowsHasAGradientOfZeros) {
  expect_agreement({zeros({0, 4}), zeros({5, 4}), zeros({0}, {DType::kI64})},
                   [](const std::vector<Tensor>& t) {
                     const auto [loss, of_input, of_weight] = linear_cross_entropy_by_chunks(
                         t[0], t[1], t[2], Reduction::kSum, -100, 3, {true, true});
                     return std::vector<Tensor>{loss, of_input, of_weight};
                   });
}

TEST(CudaLinearCrossEntropy, ATargetOutOfRangeIsThrownWhenTheDeviceIsWaitedFor) {
  const Tensor bad = tensor_from<int64_t>({1, 9}, {2}).to(kGpu);
  const Tensor loss =
      linear_cross_entropy(random_tensor({2, 3}).to(kGpu), random_tensor({4, 3}).to(kGpu), bad);
  expect_error<Error>([&] { loss.to(kCPU); }, "[linear_cross_entropy]", "got 9");
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
