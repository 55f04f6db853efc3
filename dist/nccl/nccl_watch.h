#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/service_thread.h"
#include "dist/group/communicator.h"
#include "dist/group/work_state.h"

namespace lockstep::dist {

/// Operations that were queued on a stream together.
struct NcclQueued {
  std::shared_ptr<WorkState> work;
  Event begins;  ///< reached when what was queued before them is done: their time starts there
  Event ends;
  std::vector<uint64_t> records;  ///< in the flight recorder
  std::chrono::milliseconds timeout{0};
  std::string op;    ///< "all_reduce"
  std::string what;  ///< "all_reduce #17 of 1,024 float32, sum in group world"
};

/// The thread that ends a group's operations: it looks again and again whether their events have
/// been reached, whether NCCL reports an error, and whether the job has failed. The first thing
/// that is wrong fails the job, unless it has failed already, and every pending operation.
///
/// Thread-safe.
class NcclWatch {
 public:
  /// Of the watch's thread alone.
  struct Hooks {
    /// Asks NCCL how it is, and moves on what could not be queued before. Whether anything moved;
    /// throws what is wrong.
    std::function<bool()> advance;
    /// Whether something cannot be queued yet.
    std::function<bool()> waits;
    /// Ends what is under way on the device; once, before the operations fail. Gives back what was
    /// not queued yet.
    std::function<std::vector<NcclQueued>(const std::exception_ptr&)> fail;
  };

  NcclWatch(std::shared_ptr<Communicator> communicator, Hooks hooks);
  /// As `stop`.
  ~NcclWatch();
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;

  void add(NcclQueued queued);
  /// There is something new for Hooks::advance.
  void wake();
  /// Waits until nothing is pending, or all has failed. Whether all is well.
  bool drain();
  /// Ends the thread; what is pending fails.
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
  std::vector<Entry> entries_;  // of the thread alone, until it has ended

  mutable std::mutex lock_;  // of what follows
  std::condition_variable changed_;
  std::vector<NcclQueued> added_;
  std::exception_ptr failure_;
  bool woken_ = false;
  bool idle_ = true;
  bool stopping_ = false;

  ServiceThread thread_;
};

/// Makes the job fail, unless it has failed already; its failure, as every rank sees it.
std::exception_ptr fail_job(Communicator& communicator, const DistError& error);

}  // namespace lockstep::dist
