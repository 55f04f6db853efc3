#pragma once

#include <vector>

#include "autograd/node.h"
#include "core/tensor/tensor.h"

namespace lockstep {

struct BackwardOptions {
  bool retain_graph = false;  ///< keep what the nodes saved, for another backward
  /// Record the backward itself, for higher derivatives; keeps the graph. Leaves and the gradients
  /// that they then hold keep each other alive, until the gradient is taken from the leaf
  /// (set_grad({})); `grad` has no such cycle.
  bool create_graph = false;
  /// Tensors whose `grad` is to be filled, computed ones too; empty means every leaf below the
  /// roots. Nodes that lead to none of them do not run.
  std::vector<Tensor> inputs;
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
/// synchronous devices on the caller's thread, those of each asynchronous device on a thread of its
/// own, with the caller's state (grad mode, default device, ...) but without its modes and
/// observers. May be called again from inside a derivative or a hook, to any depth, and from
/// several threads at once, also on graphs that share nodes and leaves. After an exception, which
/// is the first one thrown, the graph may be partly used up, and everything else is as before.
/// Throws AutogradError: a root does not require grad, a gradient is missing or does not fit, the
/// graph was used up by an earlier backward without retain_graph, or a saved tensor was changed in
/// place since.
void backward(TensorList roots, TensorList gradients = {}, const BackwardOptions& options = {});

/// The gradients of `outputs`, weighted by `grad_outputs` and summed, with respect to `inputs`
/// (leaves or intermediate tensors that require grad), one for each. No `grad` is changed.
/// Runs and throws like `backward`; also when an input is not used, unless allow_unused.
std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs = {},
                         const GradOptions& options = {});
/// The same for places in the graph: gradient `input_nr` of each edge's node.
std::vector<Tensor> grad(TensorList outputs, std::span<const Edge> inputs,
                         TensorList grad_outputs = {}, const GradOptions& options = {});

}  // namespace lockstep
