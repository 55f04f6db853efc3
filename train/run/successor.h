#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/device/arithmetic_facts.h"
#include "dist/group/process_group.h"
#include "train/report/run_directory.h"
#include "train/report/run_lock.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/held_out_watch.h"
#include "train/run/memory_copies.h"
#include "train/trainer.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Saves a run's state in place of a leader that was killed. Where every rank has all state, each
/// of the others may do it, and one of them does: the one that gets the run's lock.
///
/// That no two processes write to a run's directory rests on the lock alone (RunLock::inherit). So
/// a rank must have seen, at the start, that the leader's lock is one for it, too: that run.lock,
/// where the leader says it is, is locked by the leader. It is not where ranks have directories of
/// the same name on disks of their own, or a file system whose locks hold on one host only. A
/// leader that lives, also one that is stopped or cut off, holds the lock; one that ended by itself
/// has decided what to save, and says so in run.lock.
class Successor {
 public:
  /// For the leader, which holds the lock. Collective: the other ranks make a Successor.
  static void announce(dist::ProcessGroup& group, const RunDirectory& directory,
                       const RunLock& lock, Device device);
  /// `config` must outlive this object.
  Successor(const config::RunConfig& config, dist::ProcessGroup& group);

  /// After the loss of the leader: takes its lock, for the rank that is to lead in its place.
  /// `most`: the steps that any rank has done. Returns why it cannot be taken, or "". Throws
  /// DataError.
  std::string take_lead(int64_t most);
  /// The lock that was taken, if one was; from now on the caller's.
  std::unique_ptr<RunLock> release_lock() { return std::move(lock_); }
  const std::filesystem::path& directory() const { return leader_.directory; }

  /// After the loss of a rank: saves the state after the last step, if the leader was killed, that
  /// step is in metrics.jsonl, no checkpoint is as new, and this rank has all state
  /// (Trainer::keeps_steps_done). `held_out` is what the leader knew. Says so, also where saving
  /// fails.
  void keep_steps_done(Trainer& trainer,
                       const std::optional<HeldOutMemory>& held_out) const noexcept;
  /// After the loss of a rank, with the copies that this one has in memory: helps the rank that
  /// saves them (MemoryRescue), or is that rank if the leader was killed.
  void keep_copies(MemoryCopies& copies) const noexcept;

 private:
  /// What the leader would write in the place of this rank's facts.
  struct Leader {
    std::filesystem::path directory;
    std::string owner;  ///< of the lock
    std::string isa;
    std::vector<ArithmeticFact> arithmetic;
  };
  static Leader leader_of(const std::string& text);
  Retention retention(const std::optional<HeldOutMemory>& held_out) const;
  void use_facts_of_leader(CheckpointManifest& manifest) const;
  void tell(const std::string& line) const;
  bool is_to_be_saved(const RunDirectory& directory, int64_t step) const;

  const config::RunConfig& config_;
  std::string start_;
  int rank_;
  int world_;
  Leader leader_;
  bool sees_lock_ = false;
  std::unique_ptr<RunLock> lock_;
};

}  // namespace lockstep::train
