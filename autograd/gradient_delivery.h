#pragma once

#include <cstddef>
#include <vector>

#include "autograd/autograd.h"
#include "core/tensor/tensor.h"

// When and where gradients end, for nodes and callers that know more of it than most.
namespace lockstep {

/// As `grad`, with memory for the gradients of leaves: a derivative that can write the first
/// contribution to the gradient of `inputs[i]` to a place writes it to `destinations[i]`, where
/// that is defined, and has the shape, dtype and device of the input. `destinations` has a tensor
/// for each input or is empty. What is returned is the gradient, wherever it ended.
std::vector<Tensor> grad_into(TensorList outputs, TensorList inputs, TensorList destinations,
                              TensorList grad_outputs = {}, const GradOptions& options = {});

namespace detail {

/// What a backward offers to the node that it runs.
class EarlyGradients {
 public:
  virtual bool send(size_t edge, Tensor& gradient) = 0;

 protected:
  ~EarlyGradients() = default;
};
/// Set while a node runs; null if it has to return all gradients.
inline thread_local constinit EarlyGradients* early_gradients = nullptr;

}  // namespace detail

/// Sends the gradient of the i-th edge of the node that runs on this thread to its leaf, or through
/// one node such as a cast, before the node returns: for a node of many leaves, whose gradients are
/// then accumulated, and their hooks called, as they come. What a hook may change, such as the
/// leaf, must not be read by the node any more. Takes the gradient and returns true; where it has
/// to be returned instead, changes nothing and returns false: outside of a backward, beside threads
/// of devices, in a backward that is recorded, under hooks that want all gradients, and where the
/// edge leads to no leaf.
inline bool send_gradient_early(size_t i, Tensor& gradient) {
  return detail::early_gradients != nullptr && detail::early_gradients->send(i, gradient);
}

}  // namespace lockstep
