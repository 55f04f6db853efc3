#pragma once

#include <array>
#include <string_view>

#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/rows.h"

namespace lockstep::cuda {

/// The kernels of one family that LS_ROW_KERNELS (rows.cuh) defines, such as "softmax_bf16_warp8".
class RowKernels {
 public:
  RowKernels(const void* image, std::string_view family);

  Kernel operator()(DType dtype, RowStrategy strategy) const {
    return kernels_[static_cast<size_t>(strategy)][dtype];
  }

 private:
  std::array<DTypeKernels, kRowStrategies> kernels_;
};

}  // namespace lockstep::cuda
