#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/service_thread.h"
#include "core/tensor/event.h"
#include "core/tensor/stream.h"
#include "dist/ddp/communication_hook.h"
#include "dist/group/work.h"

namespace lockstep::dist {

/// Runs a communication hook for one bucket after another while backward goes on, on a thread, a
/// group and, on devices with streams, a stream of its own.
///
/// The first thing that goes wrong makes the job fail on all ranks, and every bucket from then on
/// with it. What the job failed with is passed on as it is, other errors with the names of hook and
/// bucket added.
class HookRunner {
 public:
  /// All ranks of `group` make one together. Each bucket's result is multiplied by `factor`.
  HookRunner(CommunicationHook hook, ProcessGroup& group, double factor);
  /// Makes the job fail where buckets are still under way: other ranks may not have theirs.
  ~HookRunner();
  HookRunner(const HookRunner&) = delete;
  HookRunner& operator=(const HookRunner&) = delete;

  /// Hands a bucket over, which is the hook's when the work queued on the current stream is done.
  /// Work is done when the result is in `bucket.values`, on devices with streams, too: to wait for
  /// it blocks.
  Work run(GradientBucket bucket);

 private:
  struct Job {
    GradientBucket bucket;
    Event ready;
    int threads = 1;  ///< of kernels
    std::shared_ptr<WorkState> work;
  };

  void serve();
  /// Waits for one; false when there will be none.
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
  std::map<std::pair<DeviceType, int>, OwnedStream> streams_;  // of the thread

  std::mutex lock_;  // of what follows
  std::condition_variable news_;
  std::deque<Job> jobs_;
  size_t unfinished_ = 0;
  bool stopping_ = false;

  ServiceThread thread_;
};

}  // namespace lockstep::dist
