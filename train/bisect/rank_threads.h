#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/tensor/device.h"
#include "dist/group/process_group.h"

namespace lockstep::train {

/// The ranks of a job as threads of this process, which do together what they are given. Sums over
/// them have the bits of ranks that are processes on hosts divided alike. Not thread-safe.
class RankThreads {
 public:
  /// What each rank does; `group` is null where it is alone.
  using Body = std::function<void(int rank, dist::ProcessGroup* group)>;

  /// `hosts`: by rank the number of its host; empty: one. One rank is the calling thread.
  RankThreads(int size, Device device, const std::vector<int>& hosts = {});
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  int size() const { return size_; }
  /// Calls `body` on all ranks at the same time, each time on the same thread for a rank, and waits
  /// for them. Rethrows what the first rank to fail threw; collectives fail from then on.
  void run(const Body& body);

 private:
  void serve(int rank, Device device, std::unique_ptr<dist::ProcessGroup> group);
  /// The next thing to do, number `done` + 1; null at the end.
  const Body* next(int64_t done);
  void note_failure(std::exception_ptr error);
  void finished();

  int size_;
  Mutex mutex_;
  CondVar changed_;
  const Body* body_ LS_GUARDED_BY(mutex_) = nullptr;
  int64_t given_ LS_GUARDED_BY(mutex_) = 0;  ///< bodies so far
  int running_ LS_GUARDED_BY(mutex_) = 0;    ///< ranks that have the last one left to do
  bool ends_ LS_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ LS_GUARDED_BY(mutex_);  ///< of the last body, the first one
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::train
