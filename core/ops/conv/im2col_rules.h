#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/conv/im2col.cc, defined in core/ops/conv/im2col_rules.cc.

Outputs im2col(const Tensor& self, IntList kernel_size, IntList dilation, IntList padding,
               IntList stride);
Outputs col2im(const Tensor& self, IntList output_size, IntList kernel_size, IntList dilation,
               IntList padding, IntList stride);

}  // namespace lockstep::rules
