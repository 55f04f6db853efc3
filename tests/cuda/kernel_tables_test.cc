#include "kernels/cuda/kernel_tables.h"

#include <gtest/gtest.h>

#include "kernels/cuda/row_kernels.h"
#include "tests/emulation/kernels.h"

namespace lockstep::cuda {
namespace {

constexpr uint64_t kImage[] = {0};

TEST(CudaKernels, EveryOneThatTheHostNamesExists) {
  int known = 0;
  for (const Kernel kernel : Kernel::all()) {
    if (kernel.images()[0] == static_cast<const void*>(kImage)) continue;  // used by this test only
    EXPECT_NE(emulation::find_kernel(kernel.name()), nullptr) << kernel.name();
    ++known;
  }
  EXPECT_GT(known, 500);
}

TEST(CudaKernels, ATableHasWhatWasNamedAndNothingElse) {
  const DTypeKernels floating(kImage, "stem", {DType::kF32, DType::kBF16}, "_end");
  EXPECT_EQ(floating[DType::kF32].name(), "stem_f32_end");
  EXPECT_EQ(floating[DType::kBF16].name(), "stem_bf16_end");
  EXPECT_EQ(floating[DType::kF64].number(), 0u);
  const DTypeKernels numbers = kernels_of_numbers(kImage, "stem");
  EXPECT_EQ(numbers[DType::kF64].name(), "stem_f64");
  EXPECT_EQ(numbers[DType::kBool].number(), numbers[DType::kI64].number());
  EXPECT_EQ(numbers[DType::kI64].name(), "stem_integers");
  const DTypeKernels lanes = kernels_of_lanes(kImage, "stem");
  EXPECT_EQ(lanes[DType::kF16].name(), "stem_f32");
  EXPECT_EQ(lanes[DType::kF64].name(), "stem_f64");
  EXPECT_EQ(lanes[DType::kU8].name(), "stem_i64");
}

TEST(CudaKernels, UnitsAreNamedByTheirBytes) {
  const UnitKernels units(kImage, "move", 16);
  EXPECT_EQ(units[1].name(), "move_b1");
  EXPECT_EQ(units[16].name(), "move_b16");
  EXPECT_EQ(UnitKernels(kImage, "move")[16].number(), 0u);
}

TEST(CudaKernels, EveryWayOfRowsOfEveryDtypeHasAKernel) {
  const RowKernels rows(kImage, "rows");
  for (const DType dtype : kFloatingDTypes) {
    for (const int64_t n : {1, 8, 256, 1024, 1025, 2048, 8192, 9000}) {
      for (const bool aligned : {false, true}) {
        EXPECT_NE(rows(dtype, row_strategy(dtype, n, aligned)).number(), 0u)
            << to_string(dtype) << ", " << n;
      }
    }
  }
  EXPECT_EQ(rows(DType::kBF16, RowStrategy::kWarp8).name(), "rows_bf16_warp8");
}

}  // namespace
}  // namespace lockstep::cuda
