#pragma once

#include <optional>

#include "core/base/scoped_value.h"
#include "core/device/active_capture.h"
#include "core/memory/caching_allocator.h"

namespace lockstep {

/// While alive, the thread takes part in `capture` and allocates from its pool. No effect if null.
class CaptureScope {
 public:
  [[nodiscard]] explicit CaptureScope(const ActiveCapture* capture)
      : capture_(detail::thread_capture, capture) {
    if (capture != nullptr && capture != capture_.outer()) {
      pool_.emplace(*capture->allocator, capture->pool);
    }
  }

 private:
  ScopedValue<const ActiveCapture*> capture_;
  std::optional<PoolGuard> pool_;
};

}  // namespace lockstep
