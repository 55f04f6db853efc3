#pragma once

#include <cstring>

#include "core/tensor/tensor.h"

namespace lockstep {

/// Whether both tensors have the same dtype, sizes and bits.
inline bool have_same_bytes(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !same(a.sizes(), b.sizes())) return false;
  const Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.nbytes() == 0 || std::memcmp(x.data(), y.data(), x.nbytes()) == 0;
}

}  // namespace lockstep
