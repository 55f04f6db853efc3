#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/service_thread.h"
#include "train/run/checkpoint.h"
#include "train/run/state_copies.h"
#include "train/run/state_shards.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// What saving has cost training.
struct SaveCounts {
  int64_t saves = 0;         ///< checkpoints that were written
  double stall_seconds = 0;  ///< training stood still for them, the waits below included
  int64_t waits = 0;         ///< saves that had to wait for the one before
  double wait_seconds = 0;
};

/// Writes a run's checkpoints, as checkpoint.files and checkpoint.asynchronous say. In shards each
/// rank has one, and `begin` and `finish` are collective; else rank 0 alone.
///
/// Asynchronously `begin` only notes what is to be saved: a thread copies this rank's part of the
/// state (StateCopies) while the next step's forward and backward run, which do not change it, and
/// writes the copies; the step's update waits until they are made. Ranks communicate through a
/// subgroup of its own meanwhile. At most one save is under way: its copies take the memory of what
/// this rank writes once more.
/// Not thread-safe.
class CheckpointSaver {
 public:
  /// Everything must outlive this object; `group` may be null.
  CheckpointSaver(const config::RunConfig& config, Trainer& trainer, dist::ProcessGroup* group);
  /// Waits until a save that is under way has ended, well or not.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  bool in_shards() const { return in_shards_; }
  bool is_asynchronous() const { return asynchronous_; }

  /// What only rank 0 knows of a save.
  struct Leader {
    std::filesystem::path folder;  ///< the run's checkpoints/
    CheckpointRecord record;
    /// As Trainer::collect_state, of a sharded model that is not saved in shards.
    std::function<Tensor(size_t)> collect;
    /// Called, on the thread that writes, once the checkpoint has its name.
    std::function<void()> then;
  };
  /// Begins to save the trainer's state as it is now. `leader` on rank 0 only. Call it when
  /// nothing is under way. Errors of writing are kept for `finish`.
  void begin(std::optional<Leader> leader);
  /// Between `begin` and `finish`.
  bool is_under_way() const { return under_way_; }
  /// Whether what is under way has ended, so that `finish` need not wait.
  bool has_ended() const { return under_way_ && ended_; }
  /// Seconds for which updates have waited for copies since the last call.
  double take_copy_wait() { return std::exchange(copy_wait_, 0); }
  /// Waits until the save is written, and throws what it threw: in shards on all ranks the error of
  /// the first that failed. Returns the seconds that writing took.
  double finish();

 private:
  void begin_shards();
  void begin_whole();
  void end_copies();
  void write();

  Trainer& trainer_;
  dist::ProcessGroup* group_;
  std::unique_ptr<dist::ProcessGroup> own_group_;  ///< of the writing threads
  std::string strategy_;
  bool in_shards_;
  bool asynchronous_;

  // The save under way.
  std::optional<Leader> leader_;
  std::optional<StateShards> shards_;
  WholeState whole_;
  StateCopies copies_;
  bool under_way_ = false;
  std::atomic<bool> ended_ = false;
  double seconds_ = 0;
  double copy_wait_ = 0;
  std::exception_ptr failure_;
  ServiceThread thread_;  // last: it uses the others
};

}  // namespace lockstep::train
