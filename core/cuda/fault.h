#pragma once

#include <cstdint>

namespace lockstep::cuda {

/// Error record of the kernels of one operator, in memory that both the device and the cpu can
/// access. The first thread that finds `hit` 0 fills in the rest.
struct Fault {
  uint32_t hit;
  uint32_t reserved;
  int64_t value;  ///< the invalid value: an index, say
  int64_t low;    ///< expected: at least this,
  int64_t high;   ///< and less than this
};

}  // namespace lockstep::cuda
