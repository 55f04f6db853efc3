#include "kernels/cuda/row_kernels.h"

namespace lockstep::cuda {

RowKernels::RowKernels(const void* image, std::string_view family) {
  for (int i = 0; i < kRowStrategies; ++i) {
    const auto strategy = static_cast<RowStrategy>(i);
    const std::string end = std::string("_") + name(strategy);
    const bool packed = strategy == RowStrategy::kWarp8 || strategy == RowStrategy::kWarp32 ||
                        strategy == RowStrategy::kBlock8 || strategy == RowStrategy::kBlock32;
    kernels_[static_cast<size_t>(i)] =
        packed ? DTypeKernels(image, family, {DType::kF32, DType::kBF16, DType::kF16}, end)
               : DTypeKernels(image, family, kFloatingDTypes, end);
  }
}

}  // namespace lockstep::cuda
