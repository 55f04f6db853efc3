#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <thread>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "data/token_source.h"

namespace lockstep::train {

/// The sequences of one step that one rank trains on, as row-major [sequences, length] tokens.
struct StepBatch {
  std::vector<int64_t> inputs;
  std::vector<int64_t> targets;
};

/// Prepares the batches of the next steps on a background thread, so that a step finds its batch
/// ready. Batches are exactly those that `source` returns. All memory is allocated at construction.
/// For one consumer thread.
class Prefetcher {
 public:
  /// Prepares sequences [first, first + count) of each step, of `length` tokens, starting with
  /// `first_step` and up to `depth` steps ahead. `source` must outlive this object.
  Prefetcher(const TokenSource& source, int64_t length, int64_t first, int64_t count,
             int64_t first_step = 0, int depth = 2);
  /// Stops the thread after the sequence that it is preparing.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The batch of `step`, valid until the next call. Steps are expected in order; any other one (a
  /// resumed or repeated step) is prepared now, and those after it ahead. Rethrows what `source`
  /// threw for that step; the prefetcher stays usable for other steps.
  const StepBatch& step(int64_t step);
  /// How long the last call of `step` waited, in milliseconds: 0 if the batch was ready.
  double wait_ms() const { return wait_ms_; }

 private:
  struct Slot {
    StepBatch batch;
    int64_t step = -1;  ///< step of this batch; -1 if it holds none
    std::exception_ptr failure;
  };

  void work();
  /// Returns false if it was interrupted by the destructor or a request for another step.
  bool fill(Slot& slot, int64_t step);
  Slot& slot_of(int64_t step) { return slots_[static_cast<size_t>(step) % slots_.size()]; }

  const TokenSource& source_;
  int64_t length_;
  int64_t first_;
  int64_t count_;
  std::vector<Slot> slots_;

  Mutex mutex_;  ///< guards the slots' steps, too
  CondVar changed_;
  int64_t wanted_ LS_GUARDED_BY(
      mutex_);  ///< the step asked for last, or the first: slots from here on are in use
  int64_t prepared_ LS_GUARDED_BY(mutex_);  ///< the next step to prepare
  bool stop_ LS_GUARDED_BY(mutex_) = false;

  double wait_ms_ = 0;
  std::thread worker_;
};

}  // namespace lockstep::train
