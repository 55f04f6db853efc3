#pragma once

#include <cstdint>

namespace lockstep::cuda {

/// What kernels of one operator note when they are given what it refuses; in memory that the device
/// and the cpu can write. The first thread to find `hit` 0 writes the rest.
struct Fault {
  uint32_t hit;
  uint32_t reserved;
  int64_t value;  ///< an index, say
  int64_t low;    ///< what was expected: at least this,
  int64_t high;   ///< and less than this
};

}  // namespace lockstep::cuda
