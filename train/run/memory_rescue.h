#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/device/arithmetic_facts.h"
#include "train/report/run_directory.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/memory_copies.h"

namespace lockstep::train {

/// After the loss of ranks, those that are left write the newest copies of the state that they have
/// in memory (MemoryCopies) as a checkpoint in shards. Their group has failed, so they agree
/// through files: one rank, which holds the run's lock, makes a folder that names the job's start
/// and the step. Each rank that finds it claims its own part there, by a folder of its own, and
/// writes it; a part that nobody has claimed after a moment is claimed and written by the rank that
/// has a copy of it. When all parts are there the first rank gives the checkpoint its name. All
/// waits end: where a part is missing nothing is saved.
struct MemoryRescue {
  RunDirectory directory;
  std::string start;  ///< ProcessGroup::start_id
  int rank = 0;
  int world = 0;

  /// How long the rank that leads may take to come. Launchers end ranks that do not end after a
  /// loss, unless one of them writes a checkpoint.
  static constexpr std::chrono::seconds kToCome{5};
  /// After which parts are claimed by those that have a copy.
  std::chrono::milliseconds to_claim{1000};
  /// How long the others may take to come, which first end what they compute.
  std::chrono::milliseconds to_be_claimed{20'000};
  static constexpr std::chrono::seconds kToWrite{110};

  /// For the rank that holds the lock: writes the newest copies, unless a checkpoint is as new.
  /// `change` completes the manifest. Returns the step, or nothing if there was nothing to save.
  /// Throws CheckpointError if parts are missing.
  std::optional<int64_t> lead(MemoryCopies& copies, Retention retention,
                              const std::function<void(CheckpointManifest&)>& change) const;
  /// For the others: whether a rank leads now; then writes what it is for this rank to write.
  bool follow(MemoryCopies& copies) const;

 private:
  std::filesystem::path offer() const;
  void write_parts(const MemoryCopies& copies, const MemoryCopies::Parts& parts,
                   const StateShards& division) const;
};

}  // namespace lockstep::train
