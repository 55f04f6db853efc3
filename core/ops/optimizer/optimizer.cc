#include "core/ops/optimizer/optimizer.h"

#include "core/dispatch/op.h"
#include "core/ops/optimizer/optimizer_rules.h"

namespace lockstep {

// ATen's operators of these names take one weight decay for all tensors and a step count for each.
// These take a decay flag per tensor, so that one pass covers all parameters, and one step count,
// which the caller advances, so that a step may be split into several calls.
LS_OP(
    fused_adamw,
    void(MutableTensorList, TensorList, MutableTensorList, MutableTensorList, double, double,
         double, double, double, const Tensor&, double, IntList, OptionalTensor, OptionalTensor),
    "_fused_adamw_(Tensor(a!)[] self, Tensor[] grads, Tensor(b!)[] exp_avgs, "
    "Tensor(c!)[] exp_avg_sqs, float lr, float beta1, float beta2, float weight_decay, float eps, "
    "Tensor step, float grad_scale=1., int[] decayed=[], Tensor? grad_factor=None, "
    "Tensor? found_inf=None) -> ()")
    .doc("One step of AdamW on all parameters in one pass.")
    .structured(rules::fused_adamw)
    .not_differentiable("it is an optimizer's step");
void _fused_adamw_(MutableTensorList self, TensorList grads, MutableTensorList exp_avgs,
                   MutableTensorList exp_avg_sqs, double lr, double beta1, double beta2,
                   double weight_decay, double eps, const Tensor& step, double grad_scale,
                   IntList decayed, OptionalTensor grad_factor, OptionalTensor found_inf) {
  op_fused_adamw(self, grads, exp_avgs, exp_avg_sqs, lr, beta1, beta2, weight_decay, eps, step,
                 grad_scale, decayed, grad_factor, found_inf);
}

LS_OP(fused_sgd,
      void(MutableTensorList, TensorList, MutableTensorList, double, double, bool, double, double,
           IntList, OptionalTensor, OptionalTensor),
      "_fused_sgd_(Tensor(a!)[] self, Tensor[] grads, Tensor(b!)[] momentum_buffers, "
      "float lr, float momentum, bool nesterov, float weight_decay, float grad_scale=1., "
      "int[] decayed=[], Tensor? grad_factor=None, Tensor? found_inf=None) -> ()")
    .doc("One step of SGD on all parameters in one pass.")
    .structured(rules::fused_sgd)
    .not_differentiable("it is an optimizer's step");
void _fused_sgd_(MutableTensorList self, TensorList grads, MutableTensorList momentum_buffers,
                 double lr, double momentum, bool nesterov, double weight_decay, double grad_scale,
                 IntList decayed, OptionalTensor grad_factor, OptionalTensor found_inf) {
  op_fused_sgd(self, grads, momentum_buffers, lr, momentum, nesterov, weight_decay, grad_scale,
               decayed, grad_factor, found_inf);
}

LS_OP(block_square_sums, Tensor(TensorList), "_block_square_sums(Tensor[] self) -> Tensor")
    .doc("Sums of squares of blocks of 4096 elements of each tensor, f64, in a fixed order.")
    .structured(rules::block_square_sums)
    .not_differentiable("norms are taken of gradients, after backward");
Tensor _block_square_sums(TensorList self) { return op_block_square_sums(self); }

LS_OP(ordered_sum, Tensor(const Tensor&), "_ordered_sum(Tensor self) -> Tensor")
    .doc("The sum of all elements in f64, added one after the other.")
    .structured(rules::ordered_sum)
    .not_differentiable("norms are taken of gradients, after backward");
Tensor _ordered_sum(const Tensor& self) { return op_ordered_sum(self); }

}  // namespace lockstep
