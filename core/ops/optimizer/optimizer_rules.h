#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/optimizer/optimizer.cc, defined in core/ops/optimizer/optimizer_rules.cc.

Outputs fused_adamw(MutableTensorList self, TensorList grads, MutableTensorList exp_avgs,
                    MutableTensorList exp_avg_sqs, double lr, double beta1, double beta2,
                    double weight_decay, double eps, const Tensor& step, double grad_scale,
                    IntList decayed, OptionalTensor grad_factor, OptionalTensor found_inf);
Outputs fused_sgd(MutableTensorList self, TensorList grads, MutableTensorList momentum_buffers,
                  double lr, double momentum, bool nesterov, double weight_decay, double grad_scale,
                  IntList decayed, OptionalTensor grad_factor, OptionalTensor found_inf);
Outputs block_square_sums(TensorList self);
Outputs ordered_sum(const Tensor& self);

}  // namespace lockstep::rules
