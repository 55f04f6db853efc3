#pragma once

#include <string>

#include "train/training_run.h"

/// What `lockstep train` prints before and after training.
namespace lockstep::launcher {

/// What is trained, on how many ranks and threads, and where training starts; before the first
/// step.
std::string banner(train::TrainingRun& run, const config::RunConfig& config, int ranks);

/// Steps, times, memory and held-out data of a run that came to its end.
std::string run_report(train::TrainingRun& run, const train::RunSummary& summary);

/// A text that the trained model made, which may be empty, and where to look next.
std::string sample_report(const std::string& sample, const train::RunDirectory& directory);

}  // namespace lockstep::launcher
