#pragma once

#include "autograd/accumulate_grad.h"
#include "autograd/node.h"
#include "core/base/object_pool.h"

namespace lockstep {

/// What autograd keeps about one tensor. Not thread-safe, except that `grad` of a leaf is guarded
/// by its accumulator while a backward runs.
struct Meta final : AutogradMeta, Pooled<Meta> {
  Tensor grad;                      ///< of a leaf; undefined before the first backward
  Ref<Node> grad_fn;                ///< empty for a leaf
  Ref<AccumulateGrad> accumulator;  ///< of a leaf that requires grad; made once, kept for its life
  Tensor destination;               ///< of a leaf: where its gradient must end, or undefined
  uint32_t output_nr = 0;           ///< which result of grad_fn this tensor is
  uint32_t view_version = 0;        ///< of a view: storage version for which grad_fn holds
  bool retains_grad = false;        ///< computed, and listed in the hooks of grad_fn

  ~Meta() override;
};

/// The tensor's metadata, or null where it has none.
inline Meta* find_meta(const Tensor& tensor) {
  return static_cast<Meta*>(tensor.impl()->autograd.get());
}
/// The same, made when there is none yet.
Meta& meta_of(TensorImpl& impl);

/// Where the tensor's gradient goes; empty when it does not require grad. A view whose base was
/// changed in place since gets a new grad_fn here.
/// Throws AutogradError when the tensor is one of several views made by one operator and its base
/// was changed in place.
Edge gradient_edge(const Tensor& tensor);

/// Makes `tensor` the `output_nr`-th result of `node`.
void set_history(TensorImpl& impl, Ref<Node> node, uint32_t output_nr);

/// Makes `impl` a leaf that does not require grad.
void clear_history(TensorImpl& impl);

/// Geometry of a tensor, as derivatives see it.
void set_input_meta(InputMeta& meta, const TensorImpl& impl);

}  // namespace lockstep
