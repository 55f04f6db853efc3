#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/report/run_directory.h"
#include "train/run/held_out_watch.h"
#include "train/trainer.h"
#include "train/weights/tensor_file.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// How a run resumed from its checkpoints.
struct Resumption {
  std::optional<std::filesystem::path> from;  ///< the checkpoint; nothing if there was none
  std::optional<FileDigest> weights;          ///< of its model.safetensors
  std::optional<HeldOutMemory> held_out;      ///< its held-out losses
  /// Messages for the user, a line each: what was restored, what was damaged, and all differences
  /// that keep the run from repeating an uninterrupted one (config, data, instruction set).
  std::vector<std::string> notes;
};

/// Restores `trainer` from the newest whole checkpoint in `folder`, by the table of docs/runs.md:
/// newer ones that are damaged are renamed to step-%08d.damaged, so that training can write their
/// steps again, and all others are left alone. Throws CheckpointError, and changes no file, if
/// - one that is unreadable, or of a newer version, may hold later steps than the newest whole one,
/// - there are checkpoints, or were some, but none is whole: training would start again at step 0,
/// - the chosen one does not fit the trainer.
/// If the writer's arithmetic facts (core/device/arithmetic_facts.h) differ from this process's,
/// throws CheckpointError with reproducibility BITWISE and adds a note otherwise.
Resumption resume(Trainer& trainer, const std::filesystem::path& folder,
                  const config::RunConfig& config);

/// Throws CheckpointError if the records in `directory` show that its run had checkpoints, or was
/// finished. Called where there are none, before training starts at step 0.
void require_no_history(const RunDirectory& directory);

}  // namespace lockstep::train
