#pragma once

#include "core/tensor/memory_format.h"
#include "core/tensor/outputs.h"

namespace lockstep::rules {

/// Lays a result of `like`'s shape out as `like`, its gaps closed.
inline void keep_layout(OutputSpec& spec, const Tensor& like) {
  if (like.is_contiguous()) return;
  spec.strides = strides_in_format("", MemoryFormat::kPreserve, like.sizes(), like.strides());
}

/// Lays a result of 4 or 5 dimensions out with its channels innermost where `like` asks for that.
inline void keep_format(OutputSpec& spec, const Tensor& like) {
  if (like.is_contiguous()) return;  // also where there is one channel or one place
  if (!suggests_channels_last(like.sizes(), like.strides())) return;
  if (spec.sizes.size() == static_cast<size_t>(like.dim())) {
    spec.strides = channels_last_strides(spec.sizes);
  }
}

}  // namespace lockstep::rules
