#pragma once

#include "autograd/op_node.h"

namespace lockstep {

/// Applies `node` on behalf of `owner`: saved results get `owner` as their history.
using ApplyAs = Gradients (*)(Node& node, Node* owner, std::span<Tensor> grads,
                              const BackwardCall& call);

/// The node of a base of which a view was changed in place: gradients of the changed elements go
/// through the operator that changed them, the others pass unchanged. PyTorch's name for it.
class CopySlices final : public Node {
 public:
  /// `inner` is the in-place operator's node as if the view, its first tensor argument, stood
  /// alone; `apply` applies it. `base` is the history of the base before the change (empty if it
  /// had none).
  CopySlices(Ref<Node> inner, ApplyAs apply, Edge base, const TensorImpl& base_impl,
             const TensorImpl& view);

  Gradients apply(std::span<Tensor> grads, const BackwardCall& call) override;
  std::string name() const override { return "CopySlices"; }
  void release_saved() override { inner_->release_saved(); }
  std::vector<SavedTensorInfo> saved_tensors() const override { return inner_->saved_tensors(); }

 private:
  Ref<Node> inner_;
  ApplyAs apply_;
  InputMeta base_;
  InputMeta view_;
};

/// Returns a node that treats `view` as as_strided of a base with the gradient edge `edge`.
Ref<Node> as_strided_node(Edge edge, const TensorImpl& base, const TensorImpl& view);

}  // namespace lockstep
