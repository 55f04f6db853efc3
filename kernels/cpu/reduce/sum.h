#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/shape.h"

namespace lockstep::cpu {

/// out = the sum of `self` over `dims`, with the bits of sum.dim_IntList.
void sum_over(const Out& out, const In& self, IntList dims);

}  // namespace lockstep::cpu
