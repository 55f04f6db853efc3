#pragma once

#include "core/tensor/memory_format.h"
#include "core/tensor/outputs.h"

namespace lockstep::rules {

/// Gives a result of `like`'s shape the strides of `like` without gaps.
inline void keep_layout(OutputSpec& spec, const Tensor& like) {
  if (like.is_contiguous()) return;
  spec.strides = strides_in_format("", MemoryFormat::kPreserve, like.sizes(), like.strides());
}

/// Gives a result with as many dimensions as `like` (4 or 5) channels-last strides if `like` has
/// such strides.
inline void keep_format(OutputSpec& spec, const Tensor& like) {
  if (like.is_contiguous()) return;  // also with one channel or one pixel, where both layouts agree
  if (!suggests_channels_last(like.sizes(), like.strides())) return;
  if (spec.sizes.size() == static_cast<size_t>(like.dim())) {
    spec.strides = channels_last_strides(spec.sizes);
  }
}

}  // namespace lockstep::rules
