#include "train/run/final_model.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "core/base/check.h"
#include "core/base/files/folders.h"
#include "nn/adapters/lora.h"
#include "train/run/checkpoint_state.h"
#include "train/run/consolidate.h"
#include "train/weights/adapter_files.h"
#include "train/weights/file_digests.h"
#include "train/weights/multiplier_files.h"
#include "train/weights/read_errors.h"

namespace lockstep::train {

namespace {

bool is_there(const std::filesystem::path& path) {
  return reading([&] { return name_exists(path); });
}

/// The weights of a run as digests by file: of its end, or of the checkpoint of `step`.
struct WeightsOfRun {
  std::string from;  ///< file or folder
  FileDigests files;
};

/// Whether the directory has an undamaged model, of which `is_it` holds.
template <class IsIt>
bool holds(const RunDirectory& directory, const IsIt& is_it) {
  try {
    return is_it() && verify_model(directory).has_manifest;
  } catch (const UnreadableError&) {
    throw;
  } catch (const NewerVersionError&) {
    throw;
  } catch (const CheckpointError&) {
    return false;  // damaged: it is written again
  }
}

WeightsOfRun final_weights(const RunDirectory& run) {
  const SafetensorsFile file(run.weights());
  check_file(run.weights(), file);
  return {run.weights().string(), {{run.weights().filename().string(), digest_of(file)}}};
}

/// The digests of a checkpoint's tensors. One in shards has those of whole tensors, without
/// headers.
WeightsOfRun weights_at(const std::filesystem::path& checkpoint) {
  const CheckpointManifest manifest = verify_checkpoint(checkpoint);
  if (manifest.shards) return {checkpoint.string(), whole_digests(checkpoint, *manifest.shards)};
  FileDigests files = manifest.files;
  std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".safetensors"); });
  return {checkpoint.string(), std::move(files)};
}

bool has_no_headers(const WeightsOfRun& weights) {
  return std::ranges::all_of(weights.files,
                             [](const auto& file) { return file.second.bytes == 0; });
}

void drop_headers(WeightsOfRun& weights) {
  for (auto& [name, digest] : weights.files) {
    digest.bytes = 0;
    digest.header = {};
  }
}

/// The newest step of which both runs have a checkpoint, as the paths of both.
std::optional<std::pair<std::filesystem::path, std::filesystem::path>> newest_common(
    const RunDirectory& a, const RunDirectory& b) {
  std::optional<std::pair<std::filesystem::path, std::filesystem::path>> found;
  const std::vector<CheckpointEntry> of_b = list_checkpoints(b.checkpoints());
  for (const CheckpointEntry& entry : list_checkpoints(a.checkpoints())) {
    const auto same = std::ranges::find_if(of_b, [&](const CheckpointEntry& other) {
      return other.complete && other.step == entry.step;
    });
    if (entry.complete && same != of_b.end()) found = {entry.path, same->path};
  }
  return found;
}

/// The first difference, or empty.
std::string difference(const WeightsOfRun& a, const WeightsOfRun& b) {
  for (const auto& [name, digest] : a.files) {
    const auto other = b.files.find(name);
    if (other == b.files.end()) return fmt::format("{} has no {}", b.from, name);
    for (const auto& [tensor, hash] : digest.tensors) {
      const auto same = other->second.tensors.find(tensor);
      if (same == other->second.tensors.end()) {
        return fmt::format("{} of {} has no tensor \"{}\"", name, b.from, tensor);
      }
      if (same->second != hash) return fmt::format("tensor \"{}\" in {} differs", tensor, name);
    }
    // Header and sizes say what is left: tensors that only the other has, shapes, dtypes.
    if (digest != other->second)
      return fmt::format("the tensors in {} differ in name or shape", name);
  }
  for (const auto& [name, digest] : b.files) {
    if (!a.files.contains(name)) return fmt::format("{} has no {}", a.from, name);
  }
  return "";
}

}  // namespace

void export_model(Task& task, const RunDirectory& directory, int64_t step,
                  const std::function<Tensor(size_t)>& values) {
  const std::filesystem::path manifest = directory.path() / kModelManifest;
  // Until the new manifest is there, that of earlier weights must not speak for the new ones.
  std::error_code failed;
  if (std::filesystem::remove(manifest, failed)) sync_folder(directory.path());
  LS_CHECK(!failed, DataError, "[run directory] {} cannot be removed: {}.", manifest.string(),
           failed.message());
  FileDigests files;
  const MergedWeights merged =
      without_multipliers(task.model(), merged_weights(task.model(), values));
  files[directory.weights().filename().string()] =
      save_tensors(directory.weights(), merged.stored, {}, merged.values);
  if (!nn::adapted_layers(task.model()).empty()) {
    save_adapters(task.model(), directory.path() / "adapter", values);
  }
  for (const std::string& name : task.describe(directory.path())) {
    files[name] = digest_of_file(directory.path() / name);
  }
  write_model_manifest(directory.path(), step, files);
}

bool holds_model(const RunDirectory& directory, const FileDigest& weights) {
  return holds(directory, [&] {
    const FileDigests files = digests_in(directory.path());
    const auto found = files.find(directory.weights().filename().string());
    return found != files.end() && found->second == weights;
  });
}

bool holds_model(const RunDirectory& directory, int64_t step) {
  return holds(directory, [&] { return model_step_in(directory.path()) == step; });
}

std::filesystem::path model_folder(const RunDirectory& run) {
  // A folder written by Hugging Face's programs, or a checkpoint, may hold shards instead of one
  // file.
  if (is_there(run.weights()) || is_there(run.path() / "model.safetensors.index.json") ||
      is_there(run.path() / kCheckpointManifest)) {
    return run.path();
  }
  const std::optional<CheckpointEntry> newest = newest_whole(run.checkpoints());
  LS_CHECK(newest, CheckpointError,
           "[weights] {} holds neither model.safetensors nor a complete checkpoint yet.",
           run.path().string());
  return newest->path;
}

ModelVerification verify_model(const RunDirectory& directory) {
  ModelVerification result;
  for (const auto& [name, digest] : digests_in(directory.path())) {
    result.has_manifest = true;
    check_digest(directory.path() / name, digest, digest_of_file(directory.path() / name));
    ++result.files;
    result.tensors += digest.tensors.size();
  }
  return result;
}

WeightsComparison compare_weights(const RunDirectory& a, const RunDirectory& b) {
  const bool finished_a = is_there(a.weights());
  const bool finished_b = is_there(b.weights());
  std::optional<WeightsOfRun> of_a;
  std::optional<WeightsOfRun> of_b;
  if (finished_a && finished_b) {
    of_a = final_weights(a);
    of_b = final_weights(b);
  } else if (const auto common = newest_common(a, b)) {
    of_a = weights_at(common->first);
    of_b = weights_at(common->second);
    if (has_no_headers(*of_a) || has_no_headers(*of_b)) {
      drop_headers(*of_a);
      drop_headers(*of_b);
    }
  } else if (finished_a != finished_b) {
    return {false, fmt::format("weights: only {} has any\n", (finished_a ? a : b).path().string())};
  } else {
    return {};
  }
  const std::string found = difference(*of_a, *of_b);
  if (!found.empty()) return {false, fmt::format("weights: {}\n", found)};
  size_t tensors = 0;
  for (const auto& [name, digest] : of_a->files) tensors += digest.tensors.size();
  return {true, fmt::format("weights: identical, {} tensors of {} and {}\n", tensors, of_a->from,
                            of_b->from)};
}

}  // namespace lockstep::train
