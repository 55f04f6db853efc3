#pragma once

#include <cstddef>

#include "core/tensor/tensor.h"

namespace lockstep {

namespace detail {

/// What a backward offers to the derivative that it runs.
class ArrivedGradients {
 public:
  virtual Tensor take(size_t i) = 0;

 protected:
  ~ArrivedGradients() = default;
};
/// Set while a derivative runs; null if it must not take gradients.
inline thread_local constinit ArrivedGradients* arrived_gradients = nullptr;

}  // namespace detail

/// Takes the gradient that the other uses of a tensor have sent so far, for the tensor that is the
/// i-th tensor argument of the operator whose derivative runs on this thread. What the derivative
/// returns for that argument must then include it. So a kernel adds both in the pass that computes
/// its own gradient, where backward would add them in a pass of its own. A residual stream sends
/// its gradient before the branch that read the stream does, because it was used later.
///
/// Undefined if nothing has arrived, and where the sum cannot be taken: outside of a backward, on
/// another stream, or if the node has hooks, which must see the operator's own gradient. The taken
/// gradient has the argument's shape, dtype and device; others may hold it, so it is only read.
inline Tensor take_arrived_gradient(size_t i) {
  return detail::arrived_gradients != nullptr ? detail::arrived_gradients->take(i) : Tensor();
}

}  // namespace lockstep
