#pragma once

#include "core/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/matmul.cc, defined in kernels/meta/matmul.cc.

Outputs mm(const Tensor& self, const Tensor& mat2);

}  // namespace lockstep::rules
