#include "autograd/meta.h"

#include "autograd/copy_slices.h"
#include "core/base/check.h"

namespace lockstep {

namespace {

/// Sets grad_fn, and moves the entry of a tensor that retains its gradient to the new node's hooks.
void set_grad_fn(Meta& meta, Ref<Node> node, uint32_t output_nr) {
  if (meta.retains_grad) [[unlikely]] {
    if (meta.grad_fn) meta.grad_fn->hooks()->forget(&meta);
    node->make_hooks()->retained.push_back({output_nr, &meta});
  }
  drop(std::exchange(meta.grad_fn, std::move(node)));
  meta.output_nr = output_nr;
}

/// Renews grad_fn of a view after its base was changed in place through another view: its elements
/// now come from the base's new history.
void refresh_view(TensorImpl& impl, Meta& meta) {
  const Edge base = gradient_edge(Tensor(impl.base));
  if (!base) return;
  const std::span<const Edge> edges = meta.grad_fn->next_edges();
  const bool still_true = edges.size() == 1 && edges[0].node == base.node;
  if (!still_true) {
    LS_CHECK(impl.view_origin != ViewOrigin::kMultiOutput, AutogradError,
             "[{}] a view of {} is used after its base or another view of it was changed in place. "
             "Views made several at a time cannot follow such a change: use operators that return "
             "new tensors, or make the view with slice() or select().",
             meta.grad_fn->name(), to_string(impl.sizes));
    LS_CHECK(impl.view_origin != ViewOrigin::kNoGrad, AutogradError,
             "[{}] a view of {} that a custom Function made is used after its base or another view "
             "of it was changed in place, which the Function's backward does not know. clone() the "
             "Function's result first.",
             meta.grad_fn->name(), to_string(impl.sizes));
    set_grad_fn(meta, as_strided_node(base, *impl.base, impl), 0);
  }
  meta.view_version = impl.storage->version();
}

}  // namespace

Meta::~Meta() {
  if (accumulator) accumulator->forget_leaf();
  if (retains_grad) grad_fn->hooks()->forget(this);
  drop(std::move(grad_fn));
}

Meta& meta_of(TensorImpl& impl) {
  if (!impl.autograd) impl.autograd = std::make_unique<Meta>();
  return static_cast<Meta&>(*impl.autograd);
}

Edge gradient_edge(const Tensor& tensor) {
  if (!tensor.requires_grad()) return {};
  TensorImpl& impl = *tensor.impl();
  Meta& meta = meta_of(impl);
  if (meta.grad_fn) {
    if (impl.base && meta.view_version != impl.storage->version()) refresh_view(impl, meta);
    return {meta.grad_fn, meta.output_nr};
  }
  if (!meta.accumulator) meta.accumulator = make_ref<AccumulateGrad>(&impl);
  return {meta.accumulator, 0};
}

void set_history(TensorImpl& impl, Ref<Node> node, uint32_t output_nr) {
  Meta& meta = meta_of(impl);
  set_grad_fn(meta, std::move(node), output_nr);
  meta.view_version = impl.storage->version();
  impl.keys |= Key::kAutograd;
}

void clear_history(TensorImpl& impl) {
  impl.keys = impl.keys - Key::kAutograd;
  if (!impl.autograd) return;
  Meta& meta = static_cast<Meta&>(*impl.autograd);
  if (std::exchange(meta.retains_grad, false)) meta.grad_fn->hooks()->forget(&meta);
  drop(std::move(meta.grad_fn));
}

}  // namespace lockstep
