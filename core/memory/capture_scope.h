#pragma once

#include <optional>

#include "core/device/active_capture.h"
#include "core/memory/caching_allocator.h"

namespace lockstep {

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
