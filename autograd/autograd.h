#pragma once

#include <vector>

#include "autograd/node.h"
#include "core/tensor/tensor.h"

namespace lockstep {

struct BackwardOptions {
  bool retain_graph = false;  ///< keep the saved tensors, for another backward
  /// Record the backward itself, for higher derivatives; implies retain_graph. A leaf and its
  /// gradient then keep each other alive until the gradient is reset (set_grad({})); `grad` creates
  /// no such cycle.
  bool create_graph = false;
  /// Tensors, leaves or computed, that accumulate `grad`; empty means every leaf below the roots.
  /// Nodes that lead to none of them do not run.
  std::vector<Tensor> inputs = {};
};

struct GradOptions {
  bool retain_graph = false;  ///< as in BackwardOptions
  bool create_graph = false;  ///< as in BackwardOptions
  bool allow_unused =
      false;  ///< an input that the outputs do not depend on gets an undefined gradient
  bool materialize_grads = false;  ///< such an input gets zeros
};

/// Adds the gradients of `roots`, weighted by `gradients` and summed, to the `grad` of the leaves
/// below. A gradient has its root's shape, or one that expands from it; where it is undefined or
/// the list is empty, the root must have one element, and the weight is 1.
///
/// Nodes run in the order of their sequence numbers, the latest recorded first: those of
/// synchronous devices on the caller's thread, those of each asynchronous device on a thread per
/// device, with the caller's state (grad mode, default device, ...) but without its modes and
/// observers. May be called again from inside a derivative or a hook, to any depth, and from
/// several threads at once, also on graphs that share nodes and leaves. Rethrows the first
/// exception of a node; part of the saved tensors may be freed then, and everything else is as
/// before. Throws AutogradError if a root does not require grad, a gradient is missing or does not
/// fit, the saved tensors were freed by an earlier backward without retain_graph, or a saved tensor
/// was changed in place since.
void backward(TensorList roots, TensorList gradients = {}, const BackwardOptions& options = {});

/// The gradients of `outputs`, weighted by `grad_outputs` and summed, with respect to `inputs`
/// (leaves or intermediate tensors that require grad), one for each. No `grad` is changed.
/// Runs and throws like `backward`; also throws if the outputs do not depend on an input, unless
/// allow_unused.
std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs = {},
                         const GradOptions& options = {});
/// The gradients with respect to edges of the graph: for each edge, gradient `input_nr` of its
/// node.
std::vector<Tensor> grad(TensorList outputs, std::span<const Edge> inputs,
                         TensorList grad_outputs = {}, const GradOptions& options = {});

}  // namespace lockstep
