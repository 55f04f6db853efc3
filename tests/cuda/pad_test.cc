#include "core/ops/image/pad.h"

#include <gtest/gtest.h>

#include "kernels/common/pad_border.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

TEST(CudaPad, ByANumberOnAnySideOfAnyStrides) {
  const auto padded = [](const Dims& padding) -> Compute {
    return [padding](const std::vector<Tensor>& t) -> std::vector<Tensor> {
      return {constant_pad_nd(t[0].transpose(0, 1), padding, 1.5)};
    };
  };
  for (const Dims& padding : {Dims{1, 2}, Dims{-1, 2, 3, -2}, Dims{0, 0, -3, -1}}) {
    expect_agreement({random_leaf({4, 6, 5})}, padded(padding), 0);
  }
}

TEST(CudaPad, BordersAndTheirGradientsAgreeWithTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(to_string(dtype));
    const double tolerance = rounding_of(dtype);
    expect_agreement(
        {random_leaf({2, 3, 7}, dtype)},
        [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
          return {reflection_pad(t[0], Dims{6, 3})};
        },
        tolerance);
    expect_agreement(
        {random_leaf({2, 4, 5}, dtype)},
        [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
          return {replication_pad(t[0], Dims{7, 1, -1, 9})};
        },
        tolerance);
    expect_agreement(
        {random_leaf({2, 3, 4, 5}, dtype)},
        [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
          return {reflection_pad(t[0], Dims{4, 1, 0, 3, 2, 2})};
        },
        tolerance);
  }
}

TEST(PadBorder, TargetsAreThePlacesWhoseSourceIsOurs) {
  for (const bool reflects : {false, true}) {
    const PadBorder border{reflects};
    for (const int64_t size : {1, 2, 5}) {
      for (const int64_t before : {-1, 0, 1, 4}) {
        for (const int64_t after : {0, 2, 4}) {
          if (size + before <= 0 || (reflects && (before >= size || after >= size))) continue;
          const int64_t padded = size + before + after;
          for (int64_t place = 0; place < size; ++place) {
            std::vector<int64_t> wanted, got;
            for (int64_t at = 0; at < padded; ++at) {
              if (border.source(at - before, size) == place) wanted.push_back(at);
            }
            PlaceRange ranges[3];
            const int count = border.targets(place, size, before, padded, ranges);
            for (int i = 0; i < count; ++i) {
              for (int64_t at = ranges[i].first; at < ranges[i].last; ++at) got.push_back(at);
            }
            EXPECT_EQ(got, wanted) << reflects << " " << place << " of " << size << ", " << before;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
