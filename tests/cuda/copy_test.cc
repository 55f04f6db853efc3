#include "core/ops/factory/copy.h"

#include <gtest/gtest.h>

#include "core/ops/view/view.h"
#include "tests/cuda/same_bits.h"

namespace lockstep {
namespace {

TEST(CudaCopy, OfPermutedRowsOfAnyWidth) {
  for (const DType dtype : kDtypesOfEverySize) {
    for (const int64_t width : {1, 2, 3, 4, 6, 16}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", rows of " << width);
      expect_same_bits({repeated_indices({3, 5, 4, width}, 100).to(dtype)},
                       [](const std::vector<Tensor>& t) {
                         return std::vector<Tensor>{t[0].transpose(1, 2).contiguous(),
                                                    t[0].transpose(0, 3).contiguous(),
                                                    t[0].slice(1, 1, 5, 2).contiguous()};
                       });
    }
  }
}

TEST(CudaCopy, WritesBetweenWhatStays) {
  for (const int64_t first : {0, 1, 4}) {
    for (const int64_t width : {4, 5, 8}) {
      expect_same_bits({repeated_indices({6, 20}, 100).to(DType::kF32), random_tensor({6, width})},
                       [&](const std::vector<Tensor>& t) {
                         const Tensor whole = t[0].clone();
                         whole.slice(1, first, first + width).copy_(t[1]);
                         return std::vector<Tensor>{whole};
                       });
    }
  }
}

TEST(CudaCopy, CastsBetweenFloatingDtypesAsTheCpuDoes) {
  constexpr DType kFloating[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kF64};
  for (const DType from : kFloating) {
    for (const DType to : kFloating) {
      for (const int64_t count : {1, 6, 2051}) {
        SCOPED_TRACE(testing::Message() << to_string(from) << " to " << to_string(to));
        expect_same_bits({random_tensor({count, 2}, from)}, [to](const std::vector<Tensor>& t) {
          return std::vector<Tensor>{t[0].to(to), t[0].transpose(0, 1).to(to),
                                     t[0].view({-1}).slice(0, 1).to(to), t[0].select(1, 0).to(to)};
        });
      }
    }
  }
}

TEST(CudaCopy, RepeatsWhatIsExpanded) {
  expect_same_bits({random_tensor({5, 1, 8})}, [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{t[0].expand({5, 3, 8}).contiguous(),
                               t[0].slice(2, 0, 1).expand({5, 3, 8}).contiguous()};
  });
}

}  // namespace
}  // namespace lockstep
