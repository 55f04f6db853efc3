#pragma once

#include "core/cuda/fault.h"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

/// Records that `value` is not in [low, high); only the first fault of all threads is reported.
__device__ inline void note_fault(Fault* fault, int64_t value, int64_t low, int64_t high) {
  if (atomicExch(&fault->hit, 1U) != 0) return;
  fault->value = value;
  fault->low = low;
  fault->high = high;
}

}  // namespace lockstep::cuda
