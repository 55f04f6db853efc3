#include "autograd/hooks.h"

#include <atomic>

#include "autograd/graph_run.h"
#include "autograd/meta.h"
#include "core/base/check.h"
#include "core/base/mutex.h"

namespace lockstep {

namespace {

uint64_t next_id() {
  static constinit std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

template <class Hook>
HookHandle added(Ref<NodeHooks> hooks, HookList<Hook> NodeHooks::*list, Hook hook) {
  const uint64_t id = next_id();
  ((*hooks).*list).add(id, std::move(hook));
  return {std::move(hooks), id};
}

void check_requires_grad(std::string_view op, const Tensor& tensor) {
  LS_CHECK(tensor.requires_grad(), AutogradError,
           "[{}] no gradient will ever come: expected a tensor that requires grad, got {}. Call "
           "set_requires_grad() first.",
           op, to_string(tensor));
}

/// State of a multi-tensor hook: the gradients that it waits for in the running backward.
class MultiGrad {
 public:
  MultiGrad(TensorList tensors, std::function<void(std::span<const Tensor>)> hook,
            MultiGradMode mode)
      : mode_(mode), hook_(std::move(hook)) {
    for (const Tensor& tensor : tensors) nodes_.push_back(gradient_edge(tensor).node.get());
  }

  void arrived(size_t i, const Tensor& grad) {
    std::vector<Tensor> grads;
    {
      const MutexLock lock(mutex_);
      GraphRun& run = GraphRun::of_this_thread("register_multi_grad_hook");
      if (run.id() != run_) start(run);
      grads_[i] = grad;
      if (mode_ == MultiGradMode::kAny ? called_ : --missing_ > 0) return;
      called_ = true;
      grads = mode_ == MultiGradMode::kAny ? grads_ : std::move(grads_);
    }
    hook_(grads);
  }

 private:
  void start(GraphRun& run) LS_REQUIRES(mutex_) {
    run_ = run.id();
    called_ = false;
    grads_.assign(nodes_.size(), Tensor());
    missing_ = 0;
    for (const Node* node : nodes_) missing_ += run.will_execute(node) ? 1 : 0;
  }

  Mutex mutex_;
  MultiGradMode mode_;
  std::function<void(std::span<const Tensor>)> hook_;
  std::vector<const Node*> nodes_;  ///< compared only: the hooks that own this are on the nodes
  uint64_t run_ LS_GUARDED_BY(mutex_) = 0;  ///< the backward that the rest is about
  std::vector<Tensor> grads_ LS_GUARDED_BY(mutex_);
  int missing_ LS_GUARDED_BY(mutex_) = 0;
  bool called_ LS_GUARDED_BY(mutex_) = false;
};

}  // namespace

void HookHandle::remove() {
  if (hooks_) hooks_->remove(id_);
  hooks_.reset();
}

HookHandle register_hook(const Tensor& tensor, std::function<Tensor(const Tensor& grad)> hook) {
  check_requires_grad("register_hook", tensor);
  const Edge edge = gradient_edge(tensor);
  return added(edge.node->make_hooks(), &NodeHooks::tensor,
               NodeHooks::OnGradient{edge.input_nr, std::move(hook)});
}

void Tensor::retain_grad() const {
  check_requires_grad("retain_grad", *this);
  const Edge edge = gradient_edge(*this);
  Meta& meta = meta_of(*impl_);
  if (!meta.grad_fn || meta.retains_grad) return;
  edge.node->make_hooks()->retained.push_back({edge.input_nr, &meta});
  meta.retains_grad = true;
}

bool Tensor::retains_grad() const {
  checked();
  const Meta* meta = find_meta(*this);
  return meta != nullptr && meta->retains_grad;
}

HookHandle Tensor::register_hook(std::function<Tensor(const Tensor& grad)> hook) const {
  return lockstep::register_hook(*this, std::move(hook));
}

HookHandle register_post_accumulate_grad_hook(const Tensor& leaf,
                                              std::function<void(const Tensor& leaf)> hook) {
  check_requires_grad("register_post_accumulate_grad_hook", leaf);
  LS_CHECK(leaf.is_leaf(), AutogradError,
           "[register_post_accumulate_grad_hook] expected a leaf, got {}, which was computed by "
           "{}. Use register_hook() for its gradient.",
           to_string(leaf), leaf.grad_fn()->name());
  leaf.impl()->make_findable();  // AccumulateGrad::apply makes a Tensor of it for the hook
  return added(gradient_edge(leaf).node->make_hooks(), &NodeHooks::accumulated, std::move(hook));
}

HookHandle register_prehook(Node& node, std::function<void(std::span<Tensor>)> hook) {
  return added(node.make_hooks(), &NodeHooks::before, std::move(hook));
}

HookHandle register_posthook(Node& node,
                             std::function<void(std::span<Tensor>, std::span<const Tensor>)> hook) {
  return added(node.make_hooks(), &NodeHooks::after, std::move(hook));
}

std::vector<HookHandle> register_multi_grad_hook(TensorList tensors,
                                                 std::function<void(std::span<const Tensor>)> hook,
                                                 MultiGradMode mode) {
  for (const Tensor& tensor : tensors) check_requires_grad("register_multi_grad_hook", tensor);
  const auto state = std::make_shared<MultiGrad>(tensors, std::move(hook), mode);
  std::vector<HookHandle> handles;
  for (size_t i = 0; i < tensors.size(); ++i) {
    handles.push_back(register_hook(tensors[i], [state, i](const Tensor& grad) {
      state->arrived(i, grad);
      return Tensor();
    }));
  }
  return handles;
}

void queue_callback(std::function<void()> callback) {
  GraphRun::of_this_thread("queue_callback").add_callback(std::move(callback));
}

void queue_final_callback(std::function<void()> callback) {
  GraphRun::of_this_thread("queue_final_callback").outermost().add_callback(std::move(callback));
}

bool will_engine_execute_node(const Node& node) {
  return GraphRun::of_this_thread("will_engine_execute_node").will_execute(&node);
}

}  // namespace lockstep
