#pragma once

#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace lockstep::rules {

/// Strides for a result of the shape of `heads`, [B, H, T, D] or with fewer leading dimensions: the
/// argument's own where it has no gaps and contiguous rows. Otherwise, as in a slice of a joint
/// projection, those of [B, T, H, D], so that transpose(1, 2) is row-major.
inline Dims heads_layout(const Tensor& heads) {
  if (is_dense(heads.sizes(), heads.strides()) && heads.stride(-1) == 1) {
    return to_dims(heads.strides());
  }
  const IntList sizes = heads.sizes();
  if (heads.dim() < 3) return contiguous_strides(sizes);
  Dims strides = contiguous_strides(sizes);
  const size_t h = sizes.size() - 3;
  strides[h] = sizes[h + 2];
  strides[h + 1] = sizes[h] * sizes[h + 2];
  return strides;
}

}  // namespace lockstep::rules
