#pragma once

#include <array>
#include <vector>

#include "core/base/mutex.h"
#include "core/cuda/context.h"

namespace lockstep::cuda {

/// Target of the runtime's opaque event handle.
struct EventHandle {
  CUevent native = nullptr;
  int device = 0;
  bool timing = false;
  bool recorded = false;  ///< recorded since it was acquired
  bool captured = false;  ///< last recorded in a graph, so that nothing can wait for it
};

/// Pool of one device's events. Events are reused; waits that streams already made on a returned
/// event are not affected. Thread-safe.
class Events {
 public:
  /// `context` must outlive it.
  explicit Events(Context& context) : context_(context) {}
  /// Destroys the returned events; those still in use leak.
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// Takes an event from the pool, or creates one. Throws DeviceError.
  EventHandle* acquire(bool timing);
  void release(EventHandle* event) noexcept;

 private:
  using Free = std::vector<EventHandle*>;

  Context& context_;
  Mutex mutex_;
  std::array<Free, 2> free_ LS_GUARDED_BY(mutex_);  ///< without and with timing
  std::array<size_t, 2> made_ LS_GUARDED_BY(mutex_){};
};

}  // namespace lockstep::cuda
