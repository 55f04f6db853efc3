#pragma once

#include <functional>
#include <span>
#include <vector>

#include "autograd/node_hooks.h"

namespace lockstep {

class Node;

/// Removes a hook. Dropping the handle does not: hooks stay as long as what they are on.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(Ref<NodeHooks> hooks, uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  /// Does nothing the second time. May be called by a hook.
  void remove();

 private:
  Ref<NodeHooks> hooks_;
  uint64_t id_ = 0;
};

// Hooks run on the thread that runs the node. In one backward the order at a node is: tensor hooks
// as they were added, then retained gradients, then what `grad()` asked for, then pre-hooks, the
// node itself, and post-hooks; of a leaf, post-accumulate hooks last. What a hook throws ends the
// backward and reaches its caller. Adding and removing hooks is not thread-safe.

/// Tensor hook: called with the complete gradient of `tensor` before anybody uses it; a defined
/// result takes its place. A hook added before an in-place change stays with the value before it.
/// Throws AutogradError unless the tensor requires grad; in backward when the result has another
/// shape, dtype or device than the gradient.
HookHandle register_hook(const Tensor& tensor, std::function<Tensor(const Tensor& grad)> hook);

/// Called with a leaf after its gradient was added to its `grad`. The leaf must outlive the
/// backward. Throws AutogradError unless it is a leaf that requires grad.
HookHandle register_post_accumulate_grad_hook(const Tensor& leaf,
                                              std::function<void(const Tensor& leaf)> hook);

/// Node pre-hook: sees, and may replace, the gradients that the node is about to take. Those that
/// no path brought are undefined.
HookHandle register_prehook(Node& node, std::function<void(std::span<Tensor> grad_outputs)> hook);
/// Node post-hook: sees, and may replace, those that the node gives, beside those that it took.
HookHandle register_posthook(
    Node& node,
    std::function<void(std::span<Tensor> grad_inputs, std::span<const Tensor> grad_outputs)> hook);

/// When a hook on several tensors is called in one backward.
enum class MultiGradMode {
  kAll,  ///< once, when the gradients of all that this backward reaches are complete
  kAny,  ///< once, with the first complete gradient
};
/// Multi-tensor hook: called with one gradient per tensor, undefined for those (yet) without.
/// Removing the handles removes it. Throws AutogradError unless all tensors require grad.
std::vector<HookHandle> register_multi_grad_hook(
    TensorList tensors, std::function<void(std::span<const Tensor> grads)> hook,
    MultiGradMode mode = MultiGradMode::kAll);

/// Called by a hook or a derivative: `callback` runs on the thread that called backward, after all
/// nodes of that backward; it may queue more. Throws AutogradError outside of a backward.
void queue_callback(std::function<void()> callback);

/// The same, after all nodes of the outermost backward, where backwards are nested.
void queue_final_callback(std::function<void()> callback);

/// Whether the backward that this thread is in runs `node`, or gives a gradient to somebody who
/// asked for it there. Throws AutogradError outside of a backward.
bool will_engine_execute_node(const Node& node);

}  // namespace lockstep
