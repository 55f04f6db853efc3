#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// True when `tensor` is the only way left to its elements, so that they may be changed or taken
/// over: nobody else holds the tensor or its storage, except a base that only the tensor holds.
inline bool is_exclusive(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  if (impl.use_count() != 1) return false;
  if (!impl.base) return impl.storage->use_count() == 1;
  return impl.base->use_count() == 1 && impl.base->storage == impl.storage &&
         impl.storage->use_count() == 2;
}

}  // namespace lockstep
