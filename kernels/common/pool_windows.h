#pragma once

#include <array>

#include "core/tensor/kernel_arguments.h"
#include "kernels/common/pool_axis.h"

namespace lockstep {

/// The last three dimensions; where there are two, the first of the three has size 1.
using PoolAxes = std::array<PoolAxis, 3>;

/// Lists have a number for each of the `spatial` dimensions, or one for all; no stride is the
/// kernel's size.
PoolAxes strided_pool_axes(const TensorArg& input, const TensorArg& output, int spatial,
                           IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                           bool counts_padding);
PoolAxes even_pool_axes(const TensorArg& input, const TensorArg& output, int spatial);

}  // namespace lockstep
