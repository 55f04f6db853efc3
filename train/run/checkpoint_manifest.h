#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/content_hash.h"
#include "core/device/arithmetic_facts.h"
#include "core/tensor/generator.h"
#include "train/run/held_out_watch.h"
#include "train/trainer.h"
#include "train/weights/file_digests.h"
#include "train/weights/shard_index.h"

namespace lockstep::train {

/// The contents of checkpoint.json: the position of training and the digests of the checkpoint's
/// files. It is written last, so a folder that has it is complete.
struct CheckpointManifest {
  int64_t format_version = 1;    ///< kShardedManifestVersion with `shards`
  std::string lockstep_version;  ///< version of Lockstep that wrote the checkpoint
  Position position;
  std::string optimizer;  ///< "adamw"
  int64_t optimizer_steps = 0;
  std::optional<GradScalerState> grad_scaler;  ///< set for runs with loss scaling
  std::optional<SpikeMemory> loss_spike;       ///< set for runs that look for spikes
  std::optional<HeldOutMemory> held_out;       ///< set for runs that compare evaluations
  bool after_error = false;                    ///< written because an error ended the run
  std::optional<ScheduleEnd> early_end;        ///< Trainer::early_end
  RandomKey random;                            ///< state of the default generator
  ContentHash data;                            ///< Task::data_fingerprint
  int64_t samples_per_batch = 0;
  std::string isa;                         ///< instruction sets of the writer's processor
  std::vector<ArithmeticFact> arithmetic;  ///< the writer's; empty in files of earlier versions
  FileDigests files;
  std::optional<ShardIndex> shards;  ///< set where the tensors are spread over files of ranks
};

/// Returns the manifest as one JSON object, whose last member is the hash of the text before it.
std::string format_manifest(const CheckpointManifest& manifest);

/// Parses the text of format_manifest. Error messages begin with `origin`, the file's name. Throws
/// NewerVersionError if the format is newer, which is looked at first, and CheckpointError if the
/// text was altered or members are missing.
CheckpointManifest parse_manifest(std::string_view text, std::string_view origin);

}  // namespace lockstep::train
