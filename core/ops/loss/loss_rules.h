#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/loss/softmax.cc and loss.cc, defined in core/ops/loss/loss_rules.cc.

Outputs softmax(const Tensor& self, int64_t dim, bool half_to_float);
Outputs softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim,
                         DType input_dtype);
Outputs nll_loss_forward(const Tensor& self, const Tensor& target, OptionalTensor weight,
                         int64_t reduction, int64_t ignore_index);
Outputs nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                          OptionalTensor weight, int64_t reduction, int64_t ignore_index,
                          const Tensor& total_weight);
Outputs fused_cross_entropy(const Tensor& self, const Tensor& target, int64_t reduction,
                            int64_t ignore_index);
Outputs fused_cross_entropy_backward(const Tensor& grad_output, const Tensor& self,
                                     const Tensor& target, const Tensor& logsumexp,
                                     int64_t reduction, int64_t ignore_index);

}  // namespace lockstep::rules
