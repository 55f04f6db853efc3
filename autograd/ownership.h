#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// Whether `tensor` is the only owner of its elements, so that they may be changed or reused: there
/// is no other reference to the tensor or its storage, except by a base that only `tensor` owns.
/// `handles` is the number of references to the tensor that the caller itself holds.
inline bool is_exclusive(const Tensor& tensor, uint32_t handles = 1) {
  const TensorImpl& impl = *tensor.impl();
  if (impl.use_count() != handles) return false;
  if (!impl.base) return impl.storage->use_count() == 1;
  return impl.base->use_count() == 1 && impl.base->storage == impl.storage &&
         impl.storage->use_count() == 2;
}

/// Whether both are the same elements of one storage, in the same order and dtype.
inline bool same_place(const Tensor& a, const Tensor& b) {
  return a.is_same(b) ||
         (a.storage() == b.storage() && a.storage_offset() == b.storage_offset() &&
          a.dtype() == b.dtype() && same(a.sizes(), b.sizes()) && same(a.strides(), b.strides()));
}

}  // namespace lockstep
