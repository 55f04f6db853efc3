#include "core/cuda/events.h"

#include <memory>

#include "core/base/mutex.h"
#include "core/cuda/error.h"

namespace lockstep::cuda {

Events::~Events() {
  for (const Free& free : free_) {
    for (EventHandle* const event : free) {
      if (!context_.lost_in_fork()) (void)context_.driver().cuEventDestroy(event->native);
      delete event;
    }
  }
}

EventHandle* Events::acquire(bool timing) {
  {
    const MutexLock lock(mutex_);
    Free& free = free_[timing];
    if (!free.empty()) {
      EventHandle* const event = free.back();
      free.pop_back();
      event->recorded = event->captured = false;
      return event;
    }
    // Reserve room for all events, so that release() never allocates.
    if (free.capacity() <= made_[timing]) free.reserve(2 * made_[timing] + 16);
    ++made_[timing];
  }
  const ContextGuard guard(context_);
  auto event = std::make_unique<EventHandle>();
  event->device = context_.index();
  event->timing = timing;
  LS_CUDA(context_.driver(), cuEventCreate, &event->native,
          timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
  return event.release();
}

void Events::release(EventHandle* event) noexcept {
  const MutexLock lock(mutex_);
  free_[event->timing].push_back(event);
}

}  // namespace lockstep::cuda
