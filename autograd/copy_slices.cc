#include "autograd/copy_slices.h"

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "core/dispatch/dispatcher.h"

namespace lockstep {

namespace {

InputMeta input_meta(const TensorImpl& impl) {
  InputMeta meta;
  meta.describe(impl);
  return meta;
}

Ref<Node> as_strided_node(Edge edge, const InputMeta& base, const InputMeta& view) {
  static const Operator& op = dispatcher().find("as_strided");
  Ref<OpNode> node = make_ref<OpNode>(op);
  const Dims strides = view.strides();
  node->add_tensor(std::move(edge), base);
  node->keep_argument(1, Value(IntList(view.sizes)));
  node->keep_argument(2, Value(IntList(strides)));
  node->keep_argument(3, Value(view.offset()));
  GradientMeta output;
  output.sizes = view.sizes;
  output.dtype = view.dtype;
  output.device = view.device;
  output.defined = true;
  node->add_output(output);
  return node;
}

}  // namespace

Ref<Node> as_strided_node(Edge edge, const TensorImpl& base, const TensorImpl& view) {
  return as_strided_node(std::move(edge), input_meta(base), input_meta(view));
}

CopySlices::CopySlices(Ref<Node> inner, ApplyAs apply, Edge base, const TensorImpl& base_impl,
                       const TensorImpl& view)
    : inner_(std::move(inner)),
      apply_(apply),
      base_(input_meta(base_impl)),
      view_(input_meta(view)) {
  add_edge(std::move(base));
  for (size_t i = 1; i < inner_->next_edges().size(); ++i) add_edge(inner_->next_edges()[i]);
  add_output(base_impl);
}

Gradients CopySlices::apply(std::span<Tensor> grads, const BackwardCall& call) {
  // The gradient with the base's strides, so that the view's geometry fits it.
  Tensor result = empty_strided_tensor(base_.sizes, base_.strides(), base_.dtype, base_.device);
  result.copy_(grads[0]);
  grads[0] = Tensor();
  const Tensor slice =
      result.as_strided(view_.sizes, view_.strides(), view_.offset() - base_.offset());

  // While recording, a saved result must lead back here: it is the changed view of this base.
  Ref<Node> changed_view;
  if (is_grad_enabled()) changed_view = as_strided_node({Ref<Node>::share(this), 0}, base_, view_);
  BackwardCall inner_call = call;
  inner_call.destinations = {};
  Tensor incoming = slice.clone();
  Gradients gradients = apply_(*inner_, changed_view.get(), {&incoming, 1}, inner_call);
  if (gradients.empty()) gradients.emplace_back();
  if (gradients[0].defined()) {
    slice.copy_(gradients[0]);
  } else {
    slice.zero_();
  }
  gradients[0] = std::move(result);
  return gradients;
}

}  // namespace lockstep
