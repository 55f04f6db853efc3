#pragma once

#include <deque>
#include <functional>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"

namespace lockstep::dist {

/// The thread that makes a rank's NCCL calls. A call may take as long as another rank needs to come
/// to it, or to connect; those who start operations do not wait for that.
///
/// All groups that are made from one another share it, and it runs tasks in the order in which they
/// came: communicators that share a device must be used in the same order on all ranks.
/// Thread-safe.
class NcclLauncher {
 public:
  NcclLauncher();
  /// Runs what is left.
  ~NcclLauncher();
  NcclLauncher(const NcclLauncher&) = delete;
  NcclLauncher& operator=(const NcclLauncher&) = delete;

  /// Runs `task`, which must not throw, after those added before.
  void add(std::function<void()> task);
  /// Runs `task` after those added before, waits for it, and throws what it throws; within a task
  /// it runs at once. Does nothing in a forked child, where there is no such thread.
  void run(const std::function<void()>& task);
  /// Waits for the tasks added so far.
  void drain() {
    run([] {});
  }

 private:
  void work();

  Mutex lock_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ LS_GUARDED_BY(lock_);
  bool stopping_ LS_GUARDED_BY(lock_) = false;
  ServiceThread thread_;
};

}  // namespace lockstep::dist
