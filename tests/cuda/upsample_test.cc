#include "core/ops/image/upsample.h"

#include <gtest/gtest.h>

#include "core/ops/pointwise/pointwise.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

struct Case {
  Dims size;
  std::optional<double> scale;
};
const Case kCases[] = {{{7, 11}, {}}, {{3, 2}, {}}, {{1, 20}, {}}, {{4, 6}, {}}, {{9, 13}, 2.2}};

TEST(CudaUpsample, ImagesAndGradientsAgreeWithTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", to " << to_string(c.size));
      const std::vector<Tensor> image{random_leaf({2, 3, 4, 6}, dtype)};
      const double tolerance = rounding_of(dtype);
      expect_agreement(
          image,
          [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
            return {upsample_nearest2d(t[0], c.size, c.scale, c.scale)};
          },
          tolerance);
      for (const bool align_corners : {false, true}) {
        expect_agreement(
            image,
            [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
              return {upsample_bilinear2d(t[0], c.size, align_corners, c.scale, c.scale)};
            },
            tolerance);
        expect_agreement(
            image,
            [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
              return {upsample_bicubic2d(t[0], c.size, align_corners, c.scale, c.scale)};
            },
            tolerance);
      }
    }
  }
}

TEST(CudaUpsample, BytesAreRoundedAfterEachDirection) {
  const Tensor image = add(mul(random_tensor({1, 2, 5, 6}), 60), 128).to(DType::kU8);
  for (const Dims& size : {Dims{8, 4}, Dims{5, 9}, Dims{3, 6}, Dims{5, 6}}) {
    SCOPED_TRACE(to_string(size));
    expect_agreement(
        {image},
        [=](const std::vector<Tensor>& t) -> std::vector<Tensor> {
          return {upsample_bilinear2d(t[0], size, false), upsample_bicubic2d(t[0], size, true),
                  upsample_nearest2d(t[0], size)};
        },
        0);
  }
}

}  // namespace
}  // namespace lockstep
