#pragma once

namespace lockstep::emulation {

/// Parameters of the kernels of race_kernels.cu.
struct Turned {
  int* out;    ///< of each thread of the block, what its neighbour has written
  int* count;  ///< of blocks
};

}  // namespace lockstep::emulation
