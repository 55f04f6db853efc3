// VjpContext::unbroadcast is defined here because it calls operators, and core/dispatch must not
// depend on core/ops.

#include "core/dispatch/vjp.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

Tensor VjpContext::unbroadcast(const Tensor& grad, size_t i) const {
  Tensor result = grad;
  if (!same(grad.sizes(), inputs_[i].sizes)) result = sum_to_size(result, inputs_[i].sizes);
  return result.dtype() == inputs_[i].dtype ? result : result.to(inputs_[i].dtype);
}

}  // namespace lockstep
