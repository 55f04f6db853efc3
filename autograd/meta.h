#pragma once

#include <memory>

#include "autograd/accumulate_grad.h"
#include "autograd/node.h"
#include "core/base/object_pool.h"

namespace lockstep {

/// Memory for the casts that are kept of several leaves (keep_casts_side_by_side), and the place of
/// one of them.
struct CastRow {
  size_t elements = 0;
  DType dtype = DType::kBF16;
  Ref<Storage> memory;  ///< of the casts made last; empty before the first
};
struct CastPlace {
  std::shared_ptr<CastRow> row;
  size_t first;  ///< element
};

/// Autograd's metadata of one tensor. Not thread-safe, except that `grad` of a leaf is guarded by
/// its accumulator while a backward runs.
struct Meta final : AutogradMeta, Pooled<Meta> {
  Tensor grad;        ///< gradient; undefined before the first backward
  Ref<Node> grad_fn;  ///< empty for a leaf
  Ref<AccumulateGrad>
      accumulator;       ///< sink of a leaf that requires grad; lives as long as the leaf
  Tensor prepared_cast;  ///< of a leaf (set_prepared_cast, keep_cast), if any
  std::unique_ptr<CastPlace> cast_place;  ///< where casts that are kept lie; null: anywhere
  Tensor destination;         ///< memory for a leaf's gradient (set_grad_destination), if any
  uint32_t output_nr = 0;     ///< which result of grad_fn this tensor is
  uint32_t view_version = 0;  ///< of a view: storage version for which grad_fn is valid
  uint32_t cast_version = 0;  ///< with keeps_cast: version that prepared_cast has the values of
  bool keeps_cast = false;    ///< leaf whose casts autocast keeps (keep_cast)
  bool retains_grad = false;  ///< computed tensor that keeps `grad` (hooks of grad_fn list it)

  ~Meta() override;
};

/// The tensor's metadata, or null where it has none.
inline Meta* find_meta(const Tensor& tensor) {
  return static_cast<Meta*>(tensor.impl()->autograd.get());
}
/// Returns the tensor's metadata, which is created if there is none.
Meta& meta_of(TensorImpl& impl);

/// Returns the edge that the tensor's gradient takes; empty when it does not require grad. Gives a
/// view a new grad_fn if its base was changed in place since.
/// Throws AutogradError when the tensor is one of several views made by one operator and its base
/// was changed in place.
Edge gradient_edge(const Tensor& tensor);

/// Makes `tensor` the `output_nr`-th result of `node`.
void set_history(TensorImpl& impl, Ref<Node> node, uint32_t output_nr);

/// Makes `impl` a leaf that does not require grad.
void clear_history(TensorImpl& impl);

}  // namespace lockstep
