#pragma once

#include <string_view>

#include "autograd/copy_slices.h"

namespace lockstep {

/// Refuses what cannot be recorded when `op` changes `self` in place: leaves that require grad,
/// views of such leaves, views made several at a time or while recording was off. Throws
/// AutogradError naming `op`.
void check_in_place(std::string_view op, const Tensor& self);

/// The same, before the change. A view that was made before its base had a history gets one here.
void prepare_in_place(const Operator& op, const Tensor& self);

/// Gives a view that was made before its base had a history one; nothing else changes.
void follow_base(const Tensor& self);

/// After the change: makes `node`, whose first tensor argument `self` is, the history of `self`.
/// For a view, the base takes the node in (CopySlices), and the view becomes a view of the base's
/// new history.
void rebase_history(const Tensor& self, const Ref<Node>& node, ApplyAs apply);
template <class T>
void rebase_history(const Tensor& self, const Ref<T>& node) {
  rebase_history(self, node,
                 [](Node& inner, Node* owner, std::span<Tensor> grads, const BackwardCall& call) {
                   return static_cast<T&>(inner).apply_as(owner, grads, call);
                 });
}

/// After a change of its geometry alone (`t_`): makes `node` the history of `self`, or of a view a
/// new view of the base, whose history stays.
void reshape_history(const Tensor& self, const Ref<Node>& node);

}  // namespace lockstep
