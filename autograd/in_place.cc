#include "autograd/in_place.h"

#include "autograd/meta.h"
#include "core/base/check.h"
#include "core/dispatch/dispatcher.h"

namespace lockstep {

void check_in_place(std::string_view op, const Tensor& self) {
  const TensorImpl& impl = *self.impl();
  LS_CHECK(
      !(self.requires_grad() && self.is_leaf()), AutogradError,
      "[{}] a leaf that requires grad is changed in place: {}. Use the form that returns a new "
      "tensor, or a NoGradGuard when the change is not part of the computation.",
      op, to_string(self));
  if (!impl.base) return;
  const Tensor base(impl.base);
  LS_CHECK(!(base.requires_grad() && base.is_leaf()), AutogradError,
           "[{}] a view of a leaf that requires grad is changed in place: {} of {}. Use the form "
           "that returns a new tensor, or a NoGradGuard when the change is not part of the "
           "computation.",
           op, to_string(self), to_string(base));
  LS_CHECK(
      impl.view_origin != ViewOrigin::kMultiOutput, AutogradError,
      "[{}] a view made together with others (split) is changed in place: {}. Use the form that "
      "returns a new tensor, or make the view with slice().",
      op, to_string(self));
  LS_CHECK(impl.view_origin != ViewOrigin::kNoGrad, AutogradError,
           "[{}] a view made while recording was off is changed in place while it is on: {}. Make "
           "the view with recording on, or change it under a NoGradGuard.",
           op, to_string(self));
}

void prepare_in_place(const Operator& op, const Tensor& self) {
  check_in_place(op.name(), self);
  follow_base(self);
}

void follow_base(const Tensor& self) {
  TensorImpl& impl = *self.impl();
  if (!impl.base || self.requires_grad()) return;
  const Tensor base(impl.base);
  if (!base.requires_grad()) return;
  set_history(impl, as_strided_node(gradient_edge(base), *impl.base, impl), 0);
}

void rebase_history(const Tensor& self, const Ref<Node>& node, ApplyAs apply) {
  TensorImpl& impl = *self.impl();
  const uint32_t nr = node->add_output(impl);
  if (!impl.base) {
    set_history(impl, node, nr);
    return;
  }
  TensorImpl& base = *impl.base;
  Edge before = base.keys.has(Key::kAutograd) ? gradient_edge(Tensor(impl.base)) : Edge();
  Ref<Node> changed = make_ref<CopySlices>(node, apply, std::move(before), base, impl);
  set_history(base, changed, 0);
  set_history(impl, as_strided_node({std::move(changed), 0}, base, impl), 0);
}

void reshape_history(const Tensor& self, const Ref<Node>& node) {
  TensorImpl& impl = *self.impl();
  if (impl.base) {
    set_history(impl, as_strided_node(gradient_edge(Tensor(impl.base)), *impl.base, impl), 0);
  } else {
    set_history(impl, node, node->add_output(impl));
  }
}

namespace {

/// Kernel of `detach_`. It drops the history, so it also accepts tensors that must not be changed
/// in place otherwise.
void detach_in_place(const Operator& op, KeySet keys, Stack& stack) {
  const Tensor& self = stack.arguments()[0].tensor();
  LS_CHECK(!self.is_view(), AutogradError,
           "[detach_] a view cannot leave the graph while its base stays: {} of {}. Use detach().",
           to_string(self), to_string(self.base()));
  clear_history(*self.impl());
  op.redispatch_boxed(keys & KeySet::below(Key::kAutograd), stack);
}

const Registration kDetach = [] {
  KernelRecord record;
  record.key = Key::kAutograd;
  record.boxed = &detach_in_place;
  record.site = {__FILE__, __LINE__};
  return dispatcher().register_kernel("detach_", record);
}();

}  // namespace

}  // namespace lockstep
