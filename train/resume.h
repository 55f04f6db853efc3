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

/// How a run resumed from its checkpoints.
struct Resumption {
  std::optional<std::filesystem::path> from;  ///< the checkpoint; nothing if there was none
  /// Messages for the user, a line each: what was restored, what was damaged, and all differences
  /// that keep the run from repeating an uninterrupted one (config, data, instruction set).
  std::vector<std::string> notes;
};

/// Restores `trainer` from the newest intact checkpoint in `folder`. Newer, damaged ones are
/// renamed to step-%08d.damaged, so that training can write their steps again. If the writer's
/// arithmetic facts (core/device/arithmetic_facts.h) differ from this process's, throws
/// CheckpointError with reproducibility BITWISE and adds a note otherwise. Also throws
/// CheckpointError if there are complete checkpoints but none is intact, naming every damage, or if
/// the chosen one does not fit the trainer.
Resumption resume(Trainer& trainer, const std::filesystem::path& folder,
                  const config::RunConfig& config);

}  // namespace lockstep::train
