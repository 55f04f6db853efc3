#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/content_hash.h"
#include "core/device/arithmetic_facts.h"
#include "core/tensor/generator.h"
#include "train/trainer.h"
#include "train/weights/tensor_file.h"

namespace lockstep::train {

/// What a checkpoint's checkpoint.json says: where training stands and what its files hold. The
/// file is written last, so a folder that has it is complete.
struct CheckpointManifest {
  /// Readers refuse greater ones.
  static constexpr int64_t kFormatVersion = 1;

  int64_t format_version = kFormatVersion;
  std::string lockstep_version;  ///< of the writer
  Position position;
  std::string optimizer;  ///< "adamw"
  int64_t optimizer_steps = 0;
  std::optional<GradScalerState> grad_scaler;  ///< of runs that scale their losses
  RandomKey random;                            ///< the next call of the default generator
  ContentHash data;                            ///< Task::data_fingerprint
  int64_t samples_per_batch = 0;
  std::string isa;                         ///< instruction sets of the writer's processor
  std::vector<ArithmeticFact> arithmetic;  ///< the writer's; empty where it did not say
  /// By name; of files that are not safetensors `header` is the hash of the whole.
  std::map<std::string, FileDigest> files;
};

/// One JSON object; its last member is the hash of all before it.
std::string format_manifest(const CheckpointManifest& manifest);

/// Reads it back. `origin` (the file's name) begins every message. Throws CheckpointError for text
/// that is not what was written, members that are missing, and a newer format.
CheckpointManifest parse_manifest(std::string_view text, std::string_view origin);

}  // namespace lockstep::train
