#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// Returns a reduction's result with its reduced dimensions restored with size 1, so that it
/// broadcasts with the input, of shape `sizes`. An empty list of dimensions means all.
inline Tensor with_reduced_dims(const Tensor& result, IntList sizes, IntList dims, bool keepdim) {
  if (keepdim) return result;
  const uint64_t mask = dim_mask("reduce", dims, static_cast<int64_t>(sizes.size()));
  Tensor restored = result;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if ((mask >> i) & 1) restored = restored.unsqueeze(static_cast<int64_t>(i));
  }
  return restored;
}

/// Number of elements that are reduced to one result.
inline double reduced_count(IntList sizes, IntList dims) {
  const uint64_t mask = dim_mask("reduce", dims, static_cast<int64_t>(sizes.size()));
  double count = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if ((mask >> i) & 1) count *= static_cast<double>(sizes[i]);
  }
  return count;
}

}  // namespace lockstep
