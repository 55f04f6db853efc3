#pragma once

#include <string>

#include "train/run/training_run.h"

/// What `lockstep train` prints before and after training.
namespace lockstep::launcher {

/// The line before the first step: the model, the numbers of ranks and threads, and the step at
/// which training starts.
std::string banner(train::TrainingRun& run, const config::RunConfig& config, int ranks);

/// Steps, times, memory and held-out data of a run that came to its end.
std::string run_report(train::TrainingRun& run, const train::RunSummary& summary);

/// A text that the trained model made, which may be empty, and where to look next.
std::string sample_report(const std::string& sample, const train::RunDirectory& directory);

}  // namespace lockstep::launcher
