#pragma once

#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

/// Units of 1 to 16 bytes are moved from one box to another. Strides are in bytes.
struct CopyUnits {
  const char* from;
  char* to;
  int64_t count;
  Walk<2> walk;  ///< of each unit: where in `to`, where in `from`
};

/// to[i] = from[i], converted; both begin at multiples of four elements.
struct ConvertElements {
  const void* from;
  void* to;
  int64_t count;
};

}  // namespace lockstep::cuda
