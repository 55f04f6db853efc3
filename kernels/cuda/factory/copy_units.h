#pragma once

#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

/// Copies units of 1 to 16 bytes between two strided boxes. Strides are in bytes.
struct CopyUnits {
  const char* from;
  char* to;
  int64_t count;
  Walk<2> walk;  ///< offset of each unit in `to` and in `from`
};

/// to[i] = from[i], converted; both are aligned to four elements.
struct ConvertElements {
  const void* from;
  void* to;
  int64_t count;
};

}  // namespace lockstep::cuda
