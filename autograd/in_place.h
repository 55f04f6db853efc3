#pragma once

#include <string_view>

#include "autograd/copy_slices.h"

namespace lockstep {

/// Throws AutogradError naming `op` when an in-place change of `self` cannot be recorded: for
/// leaves that require grad, views of such leaves, and views that an operator returned together
/// with others or that were made in no-grad mode.
void check_in_place(std::string_view op, const Tensor& self);

/// To be called before an in-place change: calls check_in_place and follow_base.
void prepare_in_place(const Operator& op, const Tensor& self);

/// Gives a view that was made before its base had a history a history of its own.
void follow_base(const Tensor& self);

/// To be called after an in-place change: makes `node`, the node of the operator with `self` as
/// first tensor argument, the history of `self`. For a view, CopySlices with `node` becomes the
/// history of the base, and the history of the view is a view of the base.
void rebase_history(const Tensor& self, const Ref<Node>& node, ApplyAs apply);
template <class T>
void rebase_history(const Tensor& self, const Ref<T>& node) {
  rebase_history(self, node,
                 [](Node& inner, Node* owner, std::span<Tensor> grads, const BackwardCall& call) {
                   return static_cast<T&>(inner).apply_as(owner, grads, call);
                 });
}

/// To be called after an in-place change of geometry only (`t_`): makes `node` the history of
/// `self`. A view becomes a new view of its base; the base's history does not change.
void reshape_history(const Tensor& self, const Ref<Node>& node);

}  // namespace lockstep
