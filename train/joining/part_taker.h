#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "core/base/service_thread.h"
#include "train/trainer.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Where a process takes its part of the state of a model that is spread over groups of ranks.
struct PartSource {
  int part = 0;
  std::string secret;              ///< of the door where it is given
  std::vector<std::string> doors;  ///< addresses of that: "host:port"

  std::string text() const;
  /// Reads what `text` wrote. Throws DataError for anything else.
  static PartSource of(const std::string& text);
};

/// Takes a part of the state of a run that trains on meanwhile, from a PartGiver, for a process
/// that waits to join the run: makes the updates of the part itself, as StateTaker does. Has a
/// thread of its own, as the process also waits at the leader's door. Not thread-safe.
class PartTaker {
 public:
  struct Options {
    int shard_size = 1;  ///< ranks that keep a model together
    PartSource source = {};
    std::chrono::milliseconds limit{15'000};  ///< to find the rank that gives
  };
  /// Begins. Both must outlive this object, and `legacy` is its own until `finish` has returned.
  PartTaker(const config::RunConfig& config, Options options, Trainer::Legacy& legacy);
  /// Ends taking, unless `finish` was called; within seconds if the rank says nothing.
  ~PartTaker();
  PartTaker(const PartTaker&) = delete;
  PartTaker& operator=(const PartTaker&) = delete;

  /// Waits until the rank that gives has called this process, at most about as long as `limit`.
  /// Returns after how many steps the part is that `legacy` has then; -1: it has none.
  int64_t finish(std::chrono::milliseconds limit);
  /// The last of these steps.
  const std::optional<StepResult>& last() const { return last_; }

 private:
  void run();
  void take_into(Trainer& trainer);

  const config::RunConfig& config_;
  const Options options_;
  Trainer::Legacy& legacy_;
  std::atomic<bool> is_left_ = false;
  std::promise<void> ended_;
  int64_t steps_ = -1;
  std::optional<StepResult> last_;
  ServiceThread thread_;  // last: uses all of the above
};

}  // namespace lockstep::train
