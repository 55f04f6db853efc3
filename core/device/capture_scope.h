#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/memory/caching_allocator.h"
#include "core/tensor/stream.h"

namespace lockstep {

/// A graph that is being captured (core/cuda/graph.h): what its threads queue is noted and not run,
/// so nothing can wait for it, and their memory is of the graph's pool.
struct ActiveCapture {
  Stream stream;  ///< on which it began
  CachingAllocator* allocator = nullptr;
  PoolId pool = 0;
};

namespace detail {
inline thread_local constinit const ActiveCapture* thread_capture = nullptr;
}  // namespace detail

/// What this thread takes part in capturing, or null.
inline const ActiveCapture* active_capture() noexcept { return detail::thread_capture; }

/// Throws DeviceError if this thread captures a graph: `op` cannot be part of one, because of `why`
/// ("the result is on the cpu").
void require_no_capture(std::string_view op, std::string_view why);
/// The same for whichever operator runs on this thread, or `function` where none does.
void require_no_capture_here(std::string_view function, std::string_view why);

/// While alive, the thread takes part in `capture`, which may be null.
class CaptureScope {
 public:
  explicit CaptureScope(const ActiveCapture* capture) : saved_(detail::thread_capture) {
    if (capture != nullptr && capture != saved_) pool_.emplace(*capture->allocator, capture->pool);
    detail::thread_capture = capture;
  }
  ~CaptureScope() { detail::thread_capture = saved_; }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  const ActiveCapture* saved_;
  std::optional<PoolGuard> pool_;
};

}  // namespace lockstep
