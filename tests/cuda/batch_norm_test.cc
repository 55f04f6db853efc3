#include "core/ops/norm/batch_norm.h"

#include <gtest/gtest.h>

#include "core/device/copies.h"
#include "core/ops/pointwise/pointwise.h"
#include "kernels/cuda/norm/batch_norm.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

/// Input, weight, bias, running mean and variance.
std::vector<Tensor> arguments_of(const Dims& shape, DType dtype) {
  const int64_t channels = shape[1];
  return {random_leaf(shape, dtype, 1), random_leaf({channels}, dtype, 2),
          random_leaf({channels}, dtype, 3), random_tensor({channels}, dtype, 4),
          mul(random_tensor({channels}, dtype, 5), random_tensor({channels}, dtype, 5))};
}

std::vector<Tensor> on_gpu(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> there;
  for (const Tensor& tensor : tensors) {
    there.push_back(tensor.detach().to(kGpu).set_requires_grad(tensor.requires_grad()));
  }
  return there;
}

Compute normalised(bool train) {
  return [train](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    return {batch_norm(t[0], t[1], t[2], t[3], t[4], train, 0.1, 1e-5), t[3], t[4]};
  };
}

TEST(CudaBatchNorm, AgreesWithTheCpuInBothModes) {
  // Rows; planes that do not fill a vector of 16 bytes; planes that do; several blocks per channel.
  for (const Dims& shape : {Dims{6, 5}, Dims{3, 2, 7}, Dims{2, 3, 4, 8}, Dims{3, 1, 50, 60}}) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
      for (const bool train : {false, true}) {
        SCOPED_TRACE(testing::Message() << to_string(shape) << to_string(dtype) << train);
        expect_agreement(arguments_of(shape, dtype), normalised(train), 3 * rounding_of(dtype));
      }
    }
  }
}

TEST(CudaBatchNorm, ChannelsInnermostNeedNoCopies) {
  // More channels than a block reduces, channels that do not fill a vector, and parts of rows.
  for (const Dims& shape : {Dims{2, 40, 3, 5}, Dims{3, 7, 2, 3, 2}, Dims{4, 3, 50, 60}}) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
      for (const bool train : {false, true}) {
        SCOPED_TRACE(testing::Message() << to_string(shape) << to_string(dtype) << train);
        std::vector<Tensor> arguments = arguments_of(shape, dtype);
        const auto format =
            shape.size() == 4 ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsLast3d;
        arguments[0] = clone(arguments[0].detach(), format).set_requires_grad();
        expect_agreement(arguments, normalised(train), 3 * rounding_of(dtype));
        const std::vector<Tensor> there = on_gpu(arguments);
        const int64_t before = hidden_copies().copies;
        const Tensor out = normalised(train)(there)[0];
        grad({out}, {there[0]}, {clone(out.detach(), format)});
        EXPECT_EQ(hidden_copies().copies, before);
      }
    }
  }
}

TEST(CudaBatchNorm, WithoutWeightsAndRunningStatistics) {
  expect_agreement({random_leaf({4, 3, 5})}, [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{batch_norm(t[0], {}, {}, {}, {}, true)};
  });
}

TEST(CudaBatchNorm, VarianceFarFromZeroLosesNoDigits) {
  const Tensor x = add(random_tensor({4, 2, 3000}), 1000).set_requires_grad();
  expect_agreement({x}, [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{batch_norm(t[0], {}, {}, {}, {}, true)};
  });
}

TEST(CudaBatchNorm, PartsOfAChannelAreLongAndFillTheGpu) {
  EXPECT_EQ(cuda::batch_norm_part(64, 100), 4096);
  EXPECT_EQ(cuda::batch_norm_part(64, 80000), 10000);
  EXPECT_EQ(cuda::batch_norm_part(4096, 1 << 20), 1 << 20);
  EXPECT_EQ(cuda::batch_norm_part(64, 100, true), 128);
  EXPECT_EQ(cuda::batch_norm_part(64, 264000, true), 1000);
}

}  // namespace
}  // namespace lockstep
