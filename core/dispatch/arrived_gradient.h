#pragma once

#include <cstddef>

#include "core/tensor/tensor.h"

namespace lockstep {

/// A sum that take_arrived_sum gives.
struct ArrivedSum {
  Tensor tensor;             ///< undefined if there is none
  bool is_writable = false;  ///< nothing else reads its elements: it may be added to in place
};

namespace detail {

/// What a backward offers to the derivative that it runs.
class ArrivedGradients {
 public:
  virtual ArrivedSum take(size_t i) = 0;

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
/// gradient has the argument's shape, dtype and device. It is only read unless it is said to be
/// writable: then nobody else holds it, or it lies at the place where the gradient must end
/// (set_grad_destination).
inline ArrivedSum take_arrived_sum(size_t i) {
  return detail::arrived_gradients != nullptr ? detail::arrived_gradients->take(i) : ArrivedSum();
}
/// Takes it for a derivative that only reads it.
inline Tensor take_arrived_gradient(size_t i) { return take_arrived_sum(i).tensor; }

}  // namespace lockstep
