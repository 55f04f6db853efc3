#pragma once

#include "core/memory/options.h"
#include "core/memory/units.h"
#include "core/tensor/stream.h"

namespace lockstep {

// Constants and options with which tests set up a CachingAllocator.

/// Stream 0 of the CPU, for an allocator of the CPU's memory.
inline constexpr Stream kStream{};

/// Device and stream of an allocator over BookMemory, whose memory nobody touches.
inline constexpr Device kBookDevice{DeviceType::kHost, 0};
inline constexpr Stream kBookStream{kBookDevice, 0};

/// Segments whose size is fixed when they are allocated, as PyTorch has by default.
inline AllocatorOptions plain_segments() {
  AllocatorOptions options;
  options.expandable_segments = false;
  return options;
}

}  // namespace lockstep
