#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/sample_origin.h"
#include "train/report/run_directory.h"

namespace lockstep::train {

/// What a run trained on in one step.
struct StepSamples {
  int64_t step = 0;   ///< from 1
  int64_t batch = 0;  ///< from 0; ahead of the step where batches were left out
  /// Whether checkpoints show which batch it was; false only near a step after which the run went
  /// back to a checkpoint (train.non_finite: ROLLBACK).
  bool is_certain = true;
  int64_t length = 1;                 ///< tokens of a sample; 1 for rows
  int64_t micro_batch_size = 1;       ///< samples
  std::vector<SampleOrigin> origins;  ///< in the order of the batch
  std::vector<std::string> texts;     ///< of each sample; empty where the data has no text
};

/// Reads the run's config and checkpoints, and its data where the config says it is. Throws
/// DataError for steps that the run has not made, for data that comes from no file, and where files
/// cannot be read.
StepSamples samples_of_step(const RunDirectory& run, int64_t step);

/// The samples as a table.
std::string describe(const StepSamples& samples);

}  // namespace lockstep::train
