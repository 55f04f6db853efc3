#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "core/tensor/generator.h"
#include "core/tensor/random_position.h"
#include "core/tensor/stream.h"

namespace lockstep {

class CachingAllocator;
class ReplayListeners;

/// A graph that is being captured (core/cuda/graph.h). Work that its threads queue is recorded and
/// not run, so nothing can wait for it. Their memory comes from the graph's pool.
struct ActiveCapture {
  Stream stream;  ///< stream on which the capture began
  CachingAllocator* allocator = nullptr;
  uint64_t pool = 0;  ///< a PoolId of `allocator`
  /// In the device's memory: where each replay begins in the sequence of random numbers. Kernels
  /// read it, and add how far their call was from `begun`.
  const RandomPosition* position = nullptr;
  RandomKey begun = {};                ///< state of the default generator as the capture began
  std::atomic<bool>* draws = nullptr;  ///< set by kernels that read `position`
  ReplayListeners* listeners = nullptr;
};

namespace detail {
inline thread_local constinit const ActiveCapture* thread_capture = nullptr;
}  // namespace detail

/// The capture that this thread takes part in, or null.
inline const ActiveCapture* active_capture() noexcept { return detail::thread_capture; }

/// Throws DeviceError if this thread captures a graph: `op` cannot be part of it, because of `why`
/// ("the result is on the cpu").
void require_no_capture(std::string_view op, std::string_view why);
/// Like require_no_capture, for the operator that runs on this thread, or for `function` if none
/// does.
void require_no_capture_here(std::string_view function, std::string_view why);

}  // namespace lockstep
