#pragma once

#include "core/dispatch/observer.h"

namespace lockstep {

/// While alive, the engine's workers (autograd/autograd.h), which do without the observers of the
/// thread that runs backward, report the operator calls that they make to `observer`. It is called
/// from several threads at once, and must live as long as backwards that began meanwhile. There is
/// one in a process at a time: the latest.
class WorkerObserverGuard {
 public:
  [[nodiscard]] explicit WorkerObserverGuard(CallObserver& observer) noexcept;
  ~WorkerObserverGuard();
  WorkerObserverGuard(const WorkerObserverGuard&) = delete;
  WorkerObserverGuard& operator=(const WorkerObserverGuard&) = delete;

 private:
  CallObserver* outer_;
};

/// The observer of workers, or null.
CallObserver* worker_observer() noexcept;

}  // namespace lockstep
