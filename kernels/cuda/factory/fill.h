#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

struct ZeroBytes {
  char* at;
  int64_t bytes;
};

/// out[i] = first + i * step, computed in T.
template <class T>
struct Sequence {
  void* out;
  int64_t count;
  T first;
  T step;
  DType dtype;
};

/// Queues zeroing of `bytes` bytes on the current stream of the operator's call.
void zero_bytes(void* address, int64_t bytes);

}  // namespace lockstep::cuda
