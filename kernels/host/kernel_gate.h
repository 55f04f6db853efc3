#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

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
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void reset_after_fork();

 private:
  bool enter(int priority);
  void leave();

  std::atomic<int> limit_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multiset<int> waiting_;  // priorities; guarded by mutex_
  int running_ = 0;             // guarded by mutex_
};

}  // namespace lockstep::host
