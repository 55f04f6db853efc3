#pragma once

#include "autograd/op_node.h"

namespace lockstep {

/// Refuses what cannot be recorded before `op` changes `self` in place: leaves that require grad,
/// views of such leaves, views made several at a time or while recording was off. A view that was
/// made before its base had a history gets one here. Throws AutogradError naming the operator.
void prepare_in_place(const Operator& op, const Tensor& self);

/// After the change: makes `node` the history of `self`. For a view, the base takes the node in
/// (CopySlices), and the view becomes a view of the base's new history.
void rebase_history(const Tensor& self, const Ref<OpNode>& node);

}  // namespace lockstep
