#pragma once

#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep::functors {

/// Flag by which a kernel reports an error. Any number of threads may set it; the word lies in
/// memory that both the kernel and the CPU can write.
struct ErrorFlag {
  uint32_t* word;
  LS_HOST_DEVICE void set() const {
#if defined(__CUDA_ARCH__)
    *static_cast<volatile uint32_t*>(word) = 1;
#else
    // <atomic> is dear to read, and kernels that are made at run time would read it each time.
    __atomic_store_n(word, 1, __ATOMIC_RELAXED);
#endif
  }
};

}  // namespace lockstep::functors
