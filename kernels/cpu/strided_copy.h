#pragma once

#include "core/tensor/kernel_arguments.h"
#include "kernels/common/reduce_plan.h"

namespace lockstep::cpu {

/// One dimension of a copy between two layouts; strides are in elements and may be negative.
struct CopyAxis {
  int64_t size;
  int64_t to;
  int64_t from;
};
using CopyAxes = SmallVector<CopyAxis, 5>;

/// Copies elements of `element` bytes (1, 2, 4 or 8) at all positions of `axes`, in parallel. The
/// destination must not overlap itself or the source.
void strided_copy(std::byte* to, const std::byte* from, size_t element, CopyAxes axes);

}  // namespace lockstep::cpu
