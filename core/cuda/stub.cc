// Compiled in place of the other files where the CUDA toolkit is not found or not wanted.

#include "core/cuda/availability.h"
#include "core/cuda/pattern.h"
#include "core/error.h"

namespace lockstep::cuda {

Availability availability() { return {.compiled = false, .reason = "this build has no CUDA"}; }

void fill_pattern(const Stream&, void*, size_t, uint64_t) {
  throw DeviceError("[fill_pattern] this build has no CUDA. Build where nvcc is found.");
}

void count_wrong(const Stream&, const void*, size_t, uint64_t, uint64_t*) {
  throw DeviceError("[count_wrong] this build has no CUDA. Build where nvcc is found.");
}

}  // namespace lockstep::cuda
