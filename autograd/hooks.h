#pragma once

#include <functional>
#include <span>
#include <vector>

#include "autograd/node_hooks.h"

namespace lockstep {

class Node;

/// Handle that removes a hook. Destroying the handle does not: a hook lives as long as the tensor
/// or node it is registered on.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(Ref<NodeHooks> hooks, uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  /// Removes the hook; further calls do nothing. May be called by a hook.
  void remove();

 private:
  Ref<NodeHooks> hooks_;
  uint64_t id_ = 0;
};

// Hooks run on the thread that runs the node. In one backward the order at a node is: tensor hooks
// in the order they were added, then retained gradients, then captures of `grad()`, then pre-hooks,
// the node itself, and post-hooks; for a leaf, post-accumulate hooks last. An exception of a hook
// ends the backward and reaches its caller. Adding and removing hooks is not thread-safe.

/// Tensor hook: called with the complete gradient of `tensor` before it is used; a defined result
/// replaces the gradient. A hook added before an in-place change applies to the value before the
/// change. Throws AutogradError unless the tensor requires grad. Backward throws it when the result
/// has another shape, dtype or device than the gradient.
HookHandle register_hook(const Tensor& tensor, std::function<Tensor(const Tensor& grad)> hook);

/// Called with a leaf after its gradient was added to its `grad`. The leaf must outlive the
/// backward. Throws AutogradError unless it is a leaf that requires grad.
HookHandle register_post_accumulate_grad_hook(const Tensor& leaf,
                                              std::function<void(const Tensor& leaf)> hook);

/// Node pre-hook: gets, and may replace, the gradients that the node is about to process. Those
/// that did not arrive are undefined.
HookHandle register_prehook(Node& node, std::function<void(std::span<Tensor> grad_outputs)> hook);
/// Node post-hook: gets, and may replace, the gradients that the node computed (`grad_inputs`), and
/// gets those that it processed.
HookHandle register_posthook(
    Node& node,
    std::function<void(std::span<Tensor> grad_inputs, std::span<const Tensor> grad_outputs)> hook);

/// When a hook on several tensors is called in one backward.
enum class MultiGradMode {
  kAll,  ///< once, when the gradients of all tensors that this backward reaches are complete
  kAny,  ///< once, with the first complete gradient
};
/// Multi-tensor hook: called with one gradient per tensor, undefined for those (yet) without.
/// Removing the handles removes it. Throws AutogradError unless all tensors require grad.
std::vector<HookHandle> register_multi_grad_hook(
    TensorList tensors, std::function<void(std::span<const Tensor> grads)> hook,
    MultiGradMode mode = MultiGradMode::kAll);

/// Queues `callback` from a hook or a derivative. It runs on the thread that called backward, after
/// all nodes of that backward; it may queue more. Throws AutogradError outside of a backward.
void queue_callback(std::function<void()> callback);

/// Queues `callback` to run after all nodes of the outermost of nested backwards. Otherwise like
/// `queue_callback`.
void queue_final_callback(std::function<void()> callback);

/// Whether the backward that this thread executes runs `node` or captures its gradient. Throws
/// AutogradError outside of a backward.
bool will_engine_execute_node(const Node& node);

}  // namespace lockstep
