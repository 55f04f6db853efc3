#pragma once
#include "core/tensor.h"
namespace lockstep {
/// Sums self over the dimensions that were stretched to make its shape from `sizes`.
Tensor sum_to_size(const Tensor& self, IntList sizes);
}  // namespace lockstep
