#pragma once

#include "autograd/op_node.h"

namespace lockstep {

/// The node of a base of which one view was changed in place: gradients of the changed elements go
/// through the operator that changed them, the others pass. The field calls it CopySlices.
class CopySlices final : public Node {
 public:
  /// `inner` is the in-place operator's node as if the view stood alone; `base` the history of the
  /// base before the change (empty if it had none).
  CopySlices(Ref<OpNode> inner, Edge base, const TensorImpl& base_impl, const TensorImpl& view);

  Gradients apply(std::span<Tensor> grads, const BackwardCall& call) override;
  std::string name() const override { return "CopySlices"; }
  void release_saved() override { inner_->release_saved(); }

 private:
  Ref<OpNode> inner_;
  InputMeta base_;
  InputMeta view_;
};

/// The node of `view` seen as as_strided of a base whose gradient goes to `edge`.
Ref<Node> as_strided_node(Edge edge, const TensorImpl& base, const TensorImpl& view);

}  // namespace lockstep
