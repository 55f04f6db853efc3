#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "train/report/run_directory.h"
#include "train/task.h"
#include "train/weights/tensor_file.h"

namespace lockstep::train {

/// Writes a finished run's model: model.safetensors, config.json, the tokenizer's files, and the
/// manifest with their hashes (train/weights/file_digests.h). Adapters are merged into the weights,
/// and written to adapter/ as well (train/weights/adapter_files.h); so are multipliers of muP
/// (train/weights/multiplier_files.h). `values` as save_weights takes
/// it. Throws CheckpointError or DataError.
void export_model(Task& task, const RunDirectory& directory, int64_t step,
                  const std::function<Tensor(size_t)>& values = {});

/// Whether the directory holds such a model, undamaged, whose weights are `weights`. Throws
/// UnreadableError or NewerVersionError if that cannot be told.
bool holds_model(const RunDirectory& directory, const FileDigest& weights);

/// Answers that for the model after `step`, whatever its weights: for checkpoints in shards, whose
/// manifests have no hashes of whole tensors.
bool holds_model(const RunDirectory& directory, int64_t step);

/// Returns the folder with a run's weights: the run's folder if it is finished, else its newest
/// complete checkpoint. Throws CheckpointError if there is neither.
std::filesystem::path model_folder(const RunDirectory& run);

/// Result of verify_model.
struct ModelVerification {
  bool has_manifest = false;  ///< runs of earlier versions have none
  size_t files = 0;
  size_t tensors = 0;
};
/// Verifies every byte of a finished run's model. Throws CheckpointError naming file and tensor.
ModelVerification verify_model(const RunDirectory& directory);

/// Result of comparing the weights of two runs.
struct WeightsComparison {
  bool identical = true;
  std::string text;  ///< what was compared, or the first difference; empty if neither has weights
};
/// Compares the weights of two runs bit for bit: those of their ends or, if a run is not finished,
/// weights and optimizer state of the newest step of which both have a checkpoint. Throws
/// CheckpointError for weights that are damaged.
WeightsComparison compare_weights(const RunDirectory& a, const RunDirectory& b);

}  // namespace lockstep::train
