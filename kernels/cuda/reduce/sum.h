#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/shape.h"

namespace lockstep::cuda {

/// Queues out = the sum of `self` over `dims`, as sum.dim_IntList does.
void sum_over(const Out& out, const In& self, IntList dims);

}  // namespace lockstep::cuda
