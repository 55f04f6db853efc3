#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// How a run goes on from its checkpoints.
struct Resumption {
  std::optional<std::filesystem::path> from;  ///< the checkpoint; nothing if there was none
  /// What a user should know, a line each: what was restored, what was damaged, and everything that
  /// keeps the run from repeating an uninterrupted one (config, data, instruction set).
  std::vector<std::string> notes;
};

/// Restores `trainer` from the newest checkpoint in `folder` that is whole. Newer ones that are
/// damaged are renamed to step-%08d.damaged, so that training can write their steps again.
/// With reproducibility BITWISE a checkpoint is refused, by CheckpointError, whose writer computed
/// otherwise (core/device/arithmetic_facts.h); else that is a note.
/// Throws CheckpointError naming every damage if there are complete checkpoints and none is whole,
/// or if the one chosen does not fit the trainer.
Resumption resume(Trainer& trainer, const std::filesystem::path& folder,
                  const config::RunConfig& config);

}  // namespace lockstep::train
