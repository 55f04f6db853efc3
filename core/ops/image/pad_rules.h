#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/image/pad.cc, defined in core/ops/image/pad_rules.cc.

Outputs constant_pad_nd(const Tensor& self, IntList pad, Scalar value);
/// For kRank spatial dimensions: 1, 2 or 3.
template <int kRank>
Outputs reflection_pad(const Tensor& self, IntList padding);
template <int kRank>
Outputs reflection_pad_backward(const Tensor& grad_output, const Tensor& self, IntList padding);
template <int kRank>
Outputs replication_pad(const Tensor& self, IntList padding);
template <int kRank>
Outputs replication_pad_backward(const Tensor& grad_output, const Tensor& self, IntList padding);

}  // namespace lockstep::rules
