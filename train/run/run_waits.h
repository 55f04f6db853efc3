#pragma once

#include <chrono>

#include "train/run/training_run.h"

// What the parts of TrainingRun share.

namespace lockstep::train {

// What a stop waits for.
inline constexpr const char* kWaitForBatch = "this batch of the evaluation";
inline constexpr const char* kWaitForCheckpoint = "the checkpoint that is being written";

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// What a rank tells the others of its state once it has lost some of them. Nothing but
/// Trainer::finish_step, saving and leaving may follow.
StateTold state_told(Trainer& trainer);

/// Waits for what is under way beside training, after the group has failed.
void wait_for_threads(CheckpointSaver& saver, MemoryCopies& copies);

/// Tells the caller what a stop has to wait for until the end of the scope, then "this step" again.
class WaitFor {
 public:
  WaitFor(const RunOptions& options, const char* what) : options_(options) { tell(what); }
  ~WaitFor() { tell("this step"); }
  WaitFor(const WaitFor&) = delete;
  WaitFor& operator=(const WaitFor&) = delete;

 private:
  void tell(const char* what) const {
    if (options_.waiting_for) options_.waiting_for(what);
  }

  const RunOptions& options_;
};

}  // namespace lockstep::train
