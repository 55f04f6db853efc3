#pragma once

#include <atomic>
#include <set>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"

namespace lockstep::host {

/// Lets a limited number of a device's kernels run at the same time, those of the highest priority
/// first. Thread-safe.
class KernelGate {
 public:
  /// Sets the limit; 0 means none. Does not affect kernels that already run.
  void set_limit(int limit);
  /// Held by a worker while it runs a kernel of a stream of this priority (lower values go first).
  class Pass {
   public:
    Pass(KernelGate& gate, int priority) : gate_(gate), counted_(gate.enter(priority)) {}
    ~Pass() {
      if (counted_) gate_.leave();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    KernelGate& gate_;
    bool counted_;
  };

  /// Number of workers that wait for a pass.
  size_t waiting();

  /// For a child made by fork(), where nothing runs. `lock` and `unlock` surround the fork.
  void lock() LS_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock() LS_RELEASE(mutex_) { mutex_.unlock(); }
  void reset_after_fork() LS_REQUIRES(mutex_);

 private:
  bool enter(int priority);
  void leave();

  std::atomic<int> limit_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::multiset<int> waiting_ LS_GUARDED_BY(mutex_);  ///< priorities
  int running_ LS_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::host
