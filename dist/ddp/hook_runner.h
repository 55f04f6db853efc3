#pragma once

#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"
#include "core/tensor/event.h"
#include "core/tensor/stream.h"
#include "dist/ddp/communication_hook.h"
#include "dist/group/work.h"

namespace lockstep::dist {

/// Runs a communication hook for one bucket after another while backward goes on, with its own
/// thread, group and, on devices with streams, stream.
///
/// The first error makes the job fail on all ranks, and all later buckets with it. Errors of the
/// job are rethrown unchanged; the names of the hook and the bucket are added to other errors.
class HookRunner {
 public:
  /// Collective over `group`. Each bucket's result is multiplied by `factor`.
  HookRunner(CommunicationHook hook, ProcessGroup& group, double factor);
  /// Aborts the job if buckets are still in flight, as other ranks may wait for them.
  ~HookRunner();
  HookRunner(const HookRunner&) = delete;
  HookRunner& operator=(const HookRunner&) = delete;

  /// Queues a bucket; the hook gets it after the work queued on the current stream. The returned
  /// Work completes when the result is in `bucket.values`. Waiting for it blocks the host, on
  /// devices with streams too.
  Work run(GradientBucket bucket);

 private:
  struct Job {
    GradientBucket bucket;
    Event ready;
    int threads = 1;  ///< number of threads for kernels
    std::shared_ptr<WorkState> work;
  };

  void serve();
  /// Waits for a job; returns false when stopping.
  bool take(Job& job);
  std::exception_ptr failure_of(const Job& job) noexcept;
  void run_hook(const Job& job);
  Tensor call(const GradientBucket& bucket);
  void check(const GradientBucket& bucket, const Tensor& result) const;
  std::string place(const GradientBucket& bucket) const;
  Stream stream(Device device);

  const CommunicationHook hook_;
  const double factor_;
  const std::unique_ptr<ProcessGroup> group_;
  std::map<std::pair<DeviceType, int>, OwnedStream> streams_;  // used by the thread only

  Mutex lock_;
  CondVar news_;
  std::deque<Job> jobs_ LS_GUARDED_BY(lock_);
  size_t unfinished_ LS_GUARDED_BY(lock_) = 0;
  bool stopping_ LS_GUARDED_BY(lock_) = false;

  ServiceThread thread_;
};

}  // namespace lockstep::dist
