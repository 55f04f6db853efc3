#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/service_thread.h"
#include "dist/group/process_group.h"
#include "train/run/checkpoint.h"
#include "train/run/state_copies.h"
#include "train/run/state_shards.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Copies of the state in the memory of the ranks, as checkpoint.memory_every asks for them: each
/// rank has one of its own part, as StateShards divides it, and one of the part of another rank,
/// which is on another host if the ranks' places allow it. So the parts are all there after the
/// loss of any one rank, and of a host.
///
/// `begin` only notes what is to be copied. A thread makes the copy while the next step's forward
/// and backward run, which do not change it (StateCopies), sends it to the rank that keeps it, and
/// waits until all ranks have theirs. Until then the copies before remain: a rank has the memory of
/// four parts. So every rank has the copies that any rank calls newest, at least as long as that
/// one does. Not thread-safe.
class MemoryCopies {
 public:
  /// Everything must outlive this object. `group` may be null.
  MemoryCopies(const config::RunConfig& config, Trainer& trainer, dist::ProcessGroup* group);
  /// Waits for what is under way, which ends with the group's operations.
  ~MemoryCopies();
  MemoryCopies(const MemoryCopies&) = delete;
  MemoryCopies& operator=(const MemoryCopies&) = delete;

  /// Steps between two copies; 0: there are none.
  int64_t every() const { return every_; }
  /// Begins copies of the trainer's state as it is now, once those before are there. `held_out` is
  /// part of what a checkpoint says. `at_once`: this thread makes the copy of its own part, since
  /// another object waits for the next update. Throws what went wrong with those before.
  /// Collective.
  void begin(const std::optional<HeldOutMemory>& held_out, bool at_once);
  /// Blocks until the next update may be given to another object (Trainer::before_next_update).
  void wait_for_own() const;
  /// Before the state is replaced: later steps do not follow from what was copied. Collective.
  void forget();

  /// The parts of one step.
  struct Parts {
    CheckpointRecord record;
    std::vector<Tensor> own;    ///< by piece, as write_shard_files takes them
    std::vector<Tensor> other;  ///< of rank `other_rank()`
  };
  /// The newest that all ranks have, or null. Waits for what is under way.
  const Parts* newest();
  /// Returns the parts of a step that `newest` returned on any rank; null if this rank does not
  /// have them.
  const Parts* of(int64_t step);
  int other_rank() const { return from_; }
  /// How the parts are divided; of all ranks.
  StateShards division() const;

 private:
  struct Generation {
    int64_t step = -1;  ///< -1: not to be used
    Parts parts;
    StateCopies copies;
    std::vector<Tensor> sent;      ///< a dense one for each dtype: what `parts.own` are slices of
    std::vector<Tensor> received;  ///< the same of `parts.other`
  };
  void meet();
  /// Pieces of one rank, as write_shard_files numbers them.
  std::vector<KeptRun> pieces_of(int rank) const;
  void take_memory(Generation& generation, const std::vector<KeptRun>& own) const;
  void exchange(Generation& generation);

  const config::RunConfig& config_;
  Trainer& trainer_;
  dist::ProcessGroup* group_;
  int64_t every_;
  std::optional<CheckpointRecord> record_;         ///< the last; facts are collected once
  std::unique_ptr<dist::ProcessGroup> own_group_;  ///< of the threads
  int to_ = 0;                                     ///< the rank that keeps this one's part
  int from_ = 0;
  std::array<Generation, 2> generations_;
  size_t next_ = 0;               ///< generation that is made next
  std::optional<size_t> newest_;  ///< generation that all ranks have
  bool is_made_ = false;          ///< by the thread, of the generation under way
  std::exception_ptr failure_;
  ServiceThread thread_;  // last: it uses the others
};

}  // namespace lockstep::train
