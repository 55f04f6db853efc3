#include "autograd/in_place.h"

#include "autograd/copy_slices.h"
#include "autograd/meta.h"
#include "core/check.h"

namespace lockstep {

void prepare_in_place(const Operator& op, const Tensor& self) {
  TensorImpl& impl = *self.impl();
  LS_CHECK(
      !(self.requires_grad() && self.is_leaf()), AutogradError,
      "[{}] a leaf that requires grad is changed in place: {}. Use the form that returns a new "
      "tensor, or a NoGradGuard when the change is not part of the computation.",
      op.name(), to_string(self));
  if (!impl.base) return;
  const Tensor base(impl.base);
  LS_CHECK(!(base.requires_grad() && base.is_leaf()), AutogradError,
           "[{}] a view of a leaf that requires grad is changed in place: {} of {}. Use the form "
           "that returns a new tensor, or a NoGradGuard when the change is not part of the "
           "computation.",
           op.name(), to_string(self), to_string(base));
  LS_CHECK(
      impl.view_origin != ViewOrigin::kMultiOutput, AutogradError,
      "[{}] a view made together with others (split) is changed in place: {}. Use the form that "
      "returns a new tensor, or make the view with slice().",
      op.name(), to_string(self));
  LS_CHECK(impl.view_origin != ViewOrigin::kNoGrad, AutogradError,
           "[{}] a view made while recording was off is changed in place while it is on: {}. Make "
           "the view with recording on, or change it under a NoGradGuard.",
           op.name(), to_string(self));
  if (base.requires_grad() && !self.requires_grad()) {
    set_history(impl, as_strided_node(gradient_edge(base), *impl.base, impl), 0);
  }
}

void rebase_history(const Tensor& self, const Ref<OpNode>& node) {
  TensorImpl& impl = *self.impl();
  const uint32_t nr = node->add_output(impl);
  if (!impl.base) {
    set_history(impl, node, nr);
    return;
  }
  TensorImpl& base = *impl.base;
  Edge before = base.keys.has(Key::kAutograd) ? gradient_edge(Tensor(impl.base)) : Edge();
  Ref<Node> changed = make_ref<CopySlices>(node, std::move(before), base, impl);
  set_history(base, changed, 0);
  set_history(impl, as_strided_node({std::move(changed), 0}, base, impl), 0);
}

}  // namespace lockstep
