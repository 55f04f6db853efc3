#pragma once

#include "autograd/graph_run.h"
#include "core/base/mutex.h"

namespace lockstep {

/// Holds the run's mutex while alive if workers take part. Otherwise the mutex only counts as held,
/// because one thread uses the run.
class LS_SCOPED_CAPABILITY GraphRun::Lock {
 public:
  // Not analysed: whether the lock is taken is known at run time only.
  explicit Lock(GraphRun& run) LS_ACQUIRE(run.mutex_) LS_NO_THREAD_SAFETY_ANALYSIS
      : mutex_(run.has_workers_ ? &run.mutex_ : nullptr) {
    if (mutex_ != nullptr) [[unlikely]]
      mutex_->lock();
  }
  ~Lock() LS_RELEASE() LS_NO_THREAD_SAFETY_ANALYSIS {
    if (mutex_ != nullptr) [[unlikely]]
      mutex_->unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex* const mutex_;
};

}  // namespace lockstep
