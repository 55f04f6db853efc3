#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/report/run_directory.h"
#include "train/run/checkpoint_folder.h"
#include "train/trainer.h"

namespace lockstep::train {

/// A checkpoint is a folder step-%08d from which training resumes:
///   model.safetensors        weights under the names that Hugging Face uses
///   config.json, ...         the task's description of the model, and the tokenizer's files
///   optimizer.safetensors    the optimizer's state, where it has any
///   config.txtpb             the run's resolved config
///   checkpoint.json          position, random state, hashes of all files; written last
/// Instead of the two safetensors files one in shards has a pair for each rank that wrote
/// (train/weights/shard_index.h). The files are written and synced in a temporary folder, which is
/// then renamed (train/run/checkpoint_folder.h).

/// What a checkpoint says besides tensors, of the moment at which it was taken.
struct CheckpointRecord {
  CheckpointManifest manifest;  ///< without files
  std::string config_text;
  Task* task = nullptr;  ///< describes the model; must outlive the record

  int64_t step() const { return manifest.position.step; }
};
CheckpointRecord record_of(Trainer& trainer, const std::string& config_text);
/// Makes a record of the same trainer one of the present moment; its held-out losses stay.
void update(CheckpointRecord& record, Trainer& trainer);

/// Writes the record's files besides the manifest to `folder`.
void describe_checkpoint(const CheckpointRecord& record, const std::filesystem::path& folder);

/// The tensors of a checkpoint that one rank writes.
struct WholeState {
  std::vector<nn::StoredParameter> weights;
  std::vector<nn::StoredParameter> optimizer;
  /// As save_tensors takes it, of the weights and then the optimizer's; empty: their own values.
  std::function<Tensor(size_t)> values;
};

/// Returns all tensors of the trainer's state, for a rank that has their values or `values`.
WholeState whole_state(Trainer& trainer, std::function<Tensor(size_t)> values = {});

/// Writes a checkpoint of one rank below `folder` (a run's checkpoints/) and returns its folder.
/// Throws CheckpointError or DataError with path and reason; existing checkpoints are then
/// unchanged. Reads nothing of the trainer but its task.
std::filesystem::path write_checkpoint(const std::filesystem::path& folder,
                                       const CheckpointRecord& record, const WholeState& state);

/// What follows once the checkpoint of `step` has its name: notes that the run has one, makes the
/// best one known, and removes old ones. Returns what could not be removed.
std::vector<std::string> after_save(const RunDirectory& directory, int64_t step,
                                    const Retention& retention);

/// Writes the trainer's state as it is now. `collect` as Trainer::collect_state, where that has to
/// be asked of other ranks.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, Trainer& trainer,
                                      const std::string& config_text,
                                      const std::function<Tensor(size_t)>& collect = {});

/// Loads a checkpoint that `verify_checkpoint` accepted, comparing the bytes that it loads with the
/// manifest once more, into `trainer`. Of a sharded model weights and optimizer state are left to
/// Trainer::read_state, by all ranks. Throws CheckpointError if it does not fit the trainer:
/// another optimizer, or missing, unexpected or differently shaped tensors, all of them listed.
void restore(Trainer& trainer, const std::filesystem::path& path,
             const CheckpointManifest& manifest);

}  // namespace lockstep::train
