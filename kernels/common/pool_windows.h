#pragma once

#include <array>

#include "core/tensor/kernel_arguments.h"
#include "kernels/common/pool_axis.h"

namespace lockstep {

/// The last three dimensions; for 2-d pooling the first of the three has size 1.
using PoolAxes = std::array<PoolAxis, 3>;

/// Each list has one number per spatial dimension, or a single number for all; an empty stride
/// means the kernel's size.
PoolAxes strided_pool_axes(const TensorArg& input, const TensorArg& output, int spatial,
                           IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                           bool counts_padding);
PoolAxes even_pool_axes(const TensorArg& input, const TensorArg& output, int spatial);

}  // namespace lockstep
