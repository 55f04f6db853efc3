#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"
#include "dist/group/communicator.h"
#include "dist/group/work_state.h"
#include "dist/nccl/nccl_heartbeat.h"

namespace lockstep::dist {

/// Operations that were queued on a stream together.
struct NcclQueued {
  std::shared_ptr<WorkState> work;
  Event begins;  ///< reached when the work queued before them is done: their timeout starts there
  Event ends;
  std::vector<uint64_t> records;  ///< in the flight recorder
  std::chrono::milliseconds timeout{0};
  std::string op;           ///< "all_reduce"
  std::string what;         ///< "all_reduce #17 of 1,024 float32, sum in group world"
  bool waited_for = false;  ///< its end is a thread's to wait for, not a stream's: polled often
};

/// A thread that finishes a group's operations: it polls whether their events have been reached,
/// whether NCCL reports an error, and whether the job has failed. The first error fails the job,
/// unless it has failed already, and every pending operation. It wakes every 10 ms while streams
/// alone wait for operations, and beats each time (dist/nccl/nccl_heartbeat.h).
///
/// Thread-safe.
class NcclWatch {
 public:
  /// Called by the watch's thread only.
  struct Hooks {
    /// Checks NCCL for errors and queues messages that have become ready. Returns whether there was
    /// progress; throws errors.
    std::function<bool()> advance;
    /// Whether operations are waiting to be queued.
    std::function<bool()> waits;
    /// Aborts the operations on the device; called once, before they are failed. Returns those that
    /// were not queued yet.
    std::function<std::vector<NcclQueued>(const std::exception_ptr&)> fail;
  };

  NcclWatch(std::shared_ptr<Communicator> communicator, Hooks hooks,
            std::shared_ptr<NcclPulse> pulse);
  /// Calls `stop`.
  ~NcclWatch();
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;

  /// The operation fails if `stop` was called.
  void add(NcclQueued queued);
  /// Wakes the thread to call Hooks::advance.
  void wake();
  /// Waits until nothing is pending or the group has failed. Returns whether it has not failed.
  bool drain();
  /// Ends the thread; pending operations fail.
  void stop() noexcept;

 private:
  struct Entry {
    NcclQueued queued;
    bool started = false;
    std::chrono::steady_clock::time_point since;
  };

  void run();
  bool round();
  bool look_after(Entry& entry);
  void end(Entry& entry, const std::exception_ptr& error);
  void take_failure(const std::exception_ptr& error);

  const std::shared_ptr<Communicator> communicator_;
  const Hooks hooks_;
  const std::shared_ptr<NcclPulse> pulse_;
  std::vector<Entry> entries_;  // used by the thread only, until it has ended

  Mutex lock_;
  CondVar changed_;
  std::vector<NcclQueued> added_ LS_GUARDED_BY(lock_);
  std::exception_ptr failure_ LS_GUARDED_BY(lock_);
  bool woken_ LS_GUARDED_BY(lock_) = false;
  bool idle_ LS_GUARDED_BY(lock_) = true;
  bool stopping_ LS_GUARDED_BY(lock_) = false;
  bool stopped_ LS_GUARDED_BY(lock_) = false;

  ServiceThread thread_;
};

/// Makes the job fail unless it has failed already. Returns the job's first failure.
std::exception_ptr fail_job(Communicator& communicator, const DistError& error);

}  // namespace lockstep::dist
