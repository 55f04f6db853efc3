#pragma once
#include "core/tensor.h"
namespace lockstep {
Tensor zeros(IntList sizes, TensorOptions options = {});
}  // namespace lockstep
