#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "data/token_source.h"

namespace lockstep::train {

/// The sequences of one step that one rank trains on, as row-major [sequences, length] tokens.
struct StepBatch {
  std::vector<int64_t> inputs;
  std::vector<int64_t> targets;
};

/// Prepares the batches of the next steps on a thread of its own, so that a step finds its own
/// ready. The batches are those that `source` gives; only when they are made changes. All memory is
/// taken at construction. For one consumer thread.
class Prefetcher {
 public:
  /// Prepares sequences [first, first + count) of each step, of `length` tokens, starting with
  /// `first_step` and up to `depth` steps ahead. `source` must outlive this object.
  Prefetcher(const TokenSource& source, int64_t length, int64_t first, int64_t count,
             int64_t first_step = 0, int depth = 2);
  /// Stops the thread at the end of the sequence it is at.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The batch of `step`, valid until the next call. Steps are expected in order; any other one (a
  /// resumed or repeated step) is prepared now, and those after it ahead. Rethrows what `source`
  /// threw for that step; another step may be asked for afterwards.
  const StepBatch& step(int64_t step);
  /// How long the last call of `step` waited, in milliseconds: 0 if the batch was ready.
  double wait_ms() const { return wait_ms_; }

 private:
  struct Slot {
    StepBatch batch;
    int64_t step = -1;  ///< whose batch this is; -1 while it is none's
    std::exception_ptr failure;
  };

  void work();
  /// False if it was told to stop or that another step is wanted.
  bool fill(Slot& slot, int64_t step);
  Slot& slot_of(int64_t step) { return slots_[static_cast<size_t>(step) % slots_.size()]; }

  const TokenSource& source_;
  int64_t length_;
  int64_t first_;
  int64_t count_;
  std::vector<Slot> slots_;

  std::mutex mutex_;  ///< guards all below and the slots' steps
  std::condition_variable changed_;
  int64_t wanted_;    ///< the step asked for last, or the first: slots from here on are in use
  int64_t prepared_;  ///< the next step to prepare
  bool stop_ = false;

  double wait_ms_ = 0;
  std::thread worker_;
};

}  // namespace lockstep::train
