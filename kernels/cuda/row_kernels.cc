#include "kernels/cuda/row_kernels.h"

namespace lockstep::cuda {

RowKernels::RowKernels(const void* image, std::string_view family) {
  for (int i = 0; i < kRowWays; ++i) {
    const auto way = static_cast<RowWay>(i);
    const std::string end = std::string("_") + name(way);
    const bool packed = way == RowWay::kWarp8 || way == RowWay::kWarp32 || way == RowWay::kBlock8 ||
                        way == RowWay::kBlock32;
    kernels_[static_cast<size_t>(i)] =
        packed ? DTypeKernels(image, family, {DType::kF32, DType::kBF16, DType::kF16}, end)
               : DTypeKernels(image, family, kFloatingDTypes, end);
  }
}

}  // namespace lockstep::cuda
