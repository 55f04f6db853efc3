#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/stream.h"

namespace lockstep::cuda {

/// Queues a kernel that fills memory of a cuda device with a pattern determined by `seed`; a later
/// `count_wrong` detects whether anything else wrote to it. `address` and `bytes` are multiples of
/// 8, as those of blocks are. Throws DeviceError, also if the build has no CUDA.
void fill_pattern(const Stream& stream, void* address, size_t bytes, uint64_t seed);

/// Queues a kernel that adds to `*wrong`, in device memory, the number of 8-byte words that differ
/// from what `fill_pattern` wrote.
void count_wrong(const Stream& stream, const void* address, size_t bytes, uint64_t seed,
                 uint64_t* wrong);

}  // namespace lockstep::cuda
