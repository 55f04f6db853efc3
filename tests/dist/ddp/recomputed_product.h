#pragma once

#include <vector>

#include "autograd/autograd.h"
#include "autograd/function.h"
#include "autograd/grad_mode.h"
#include "core/ops/matmul/matmul.h"

namespace lockstep::dist {

/// x * weight, recomputed in backward by a nested backward, which accumulates into the weight.
struct RecomputedProduct : Function<RecomputedProduct> {
  static Tensor forward(FunctionContext& context, const Tensor& x, const Tensor& weight) {
    context.save_for_backward({x, weight});
    return mm(x, weight);
  }
  static Gradients backward(FunctionContext& context, const Tensor& grad) {
    const Tensor x = context.saved(0).detach().set_requires_grad();
    {
      const EnableGradGuard recording;
      const Tensor again = mm(x, context.saved(1));
      lockstep::backward(std::vector<Tensor>{again}, std::vector<Tensor>{grad});
    }
    return {x.grad(), Tensor()};
  }
};

}  // namespace lockstep::dist
