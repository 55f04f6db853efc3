#include "train/checkpoint.h"

#include <fcntl.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include "core/base/atomic_file.h"
#include "core/base/check.h"
#include "core/base/file_descriptor.h"
#include "core/base/parse_json.h"
#include "core/base/regular_file.h"
#include "train/report/machine.h"
#include "train/weights.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "checkpoint.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kConfig = "config.txtpb";
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".partial-";

void check(const std::error_code& failed, const char* what, const fs::path& path) {
  LS_CHECK(!failed, DataError, "[checkpoint] {} cannot be {}: {}.", path.string(), what,
           failed.message());
}

void sync_folder(const fs::path& path) { FileDescriptor(path, O_RDONLY | O_DIRECTORY).sync(); }

/// Removes the manifest first: a folder without one is not taken for a checkpoint, so a removal
/// that is interrupted leaves none that looks complete.
void remove_checkpoint(const fs::path& path) {
  std::error_code failed;
  if (fs::remove(path / kManifest, failed)) sync_folder(path);
  check(failed, "removed", path / kManifest);
  fs::remove_all(path, failed);
  check(failed, "removed", path);
}

void remove_partial(const fs::path& folder) {
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with(kPartial)) continue;
    fs::remove_all(entry.path(), failed);
    check(failed, "removed", entry.path());
  }
}

FileDigest digest_of_file(const fs::path& path) {
  if (path.extension() == ".safetensors") return digest_of(path);
  const std::string bytes = read_whole_file(path);
  return {.bytes = bytes.size(), .header = ContentHasher().add(bytes).result()};
}

CheckpointManifest manifest_of(Trainer& trainer) {
  CheckpointManifest manifest;
  manifest.lockstep_version = LOCKSTEP_VERSION;
  manifest.position = trainer.position();
  manifest.optimizer = trainer.optimizer().kind();
  manifest.optimizer_steps = trainer.optimizer().steps();
  if (trainer.scaler().is_enabled()) manifest.grad_scaler = trainer.scaler().state();
  manifest.random = default_generator().state();
  manifest.data = trainer.task().data_fingerprint();
  manifest.samples_per_batch = trainer.samples_per_batch();
  manifest.isa = fmt::format("{}", fmt::join(isa_features(), " "));
  manifest.arithmetic = arithmetic_facts(trainer.device());
  return manifest;
}

/// Writes all files of a checkpoint but the manifest, and enters their digests there.
void write_files(const fs::path& folder, Trainer& trainer, const std::string& config_text,
                 CheckpointManifest& manifest) {
  manifest.files[kWeights] =
      save_tensors(folder / kWeights, trainer.task().model().stored_parameters());
  const std::vector<nn::StoredParameter> state = trainer.optimizer().state();
  if (!state.empty()) manifest.files[kOptimizer] = save_tensors(folder / kOptimizer, state);
  write_text(folder / kConfig, config_text);
  trainer.task().describe(folder);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!manifest.files.contains(name)) manifest.files[name] = digest_of_file(entry.path());
  }
}

}  // namespace

fs::path save_checkpoint(const fs::path& folder, Trainer& trainer, const std::string& config_text) {
  trainer.give_up_next();
  std::error_code failed;
  fs::create_directories(folder, failed);
  check(failed, "created", folder);
  remove_partial(folder);
  const std::string name = fmt::format("{}{:08}", kPrefix, trainer.steps_done());
  const fs::path partial = folder / (std::string(kPartial) + name);
  const fs::path path = folder / name;
  fs::create_directory(partial, failed);
  check(failed, "created", partial);

  CheckpointManifest manifest = manifest_of(trainer);
  try {
    write_files(partial, trainer, config_text, manifest);
  } catch (...) {
    fs::remove_all(partial, failed);  // the disk may be full: free the space at once
    throw;
  }
  // An existing folder is damaged or incomplete: otherwise training would have resumed from it.
  if (fs::exists(path, failed)) remove_checkpoint(path);
  fs::rename(partial, path, failed);
  check(failed, "renamed", partial);
  sync_folder(folder);
  write_text(path / kManifest, format_manifest(manifest));
  return path;
}

CheckpointManifest verify_checkpoint(const fs::path& path) {
  std::error_code failed;
  LS_CHECK(fs::exists(path / kManifest, failed), CheckpointError,
           "[checkpoint] {} has no {}: it was not written to its end.", path.string(), kManifest);
  try {
    const CheckpointManifest manifest = parse_manifest(
        read_whole_file(path / kManifest, kMostJsonBytes), (path / kManifest).string());
    for (const auto& [name, digest] : manifest.files) {
      LS_CHECK(fs::exists(path / name, failed), CheckpointError,
               "[checkpoint] {}: the file is missing.", (path / name).string());
      check_digest(path / name, digest, digest_of_file(path / name));
    }
    return manifest;
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

void restore(Trainer& trainer, const fs::path& path, const CheckpointManifest& manifest) {
  trainer.give_up_next();
  Optimizer& optimizer = trainer.optimizer();
  LS_CHECK(manifest.optimizer == optimizer.kind(), CheckpointError,
           "[checkpoint] {}: its optimizer is {}, the config's {}. Set optimizer.{} {{}} in the "
           "config, or train in another directory.",
           path.string(), manifest.optimizer, optimizer.kind(), manifest.optimizer);
  load_weights(trainer.task().model(), path / kWeights);
  const std::vector<nn::StoredParameter> state = optimizer.state();
  if (!state.empty()) load_tensors(path / kOptimizer, state);
  optimizer.set_steps(manifest.optimizer_steps);
  if (manifest.grad_scaler) trainer.scaler().load_state(*manifest.grad_scaler);
  trainer.set_position(manifest.position);
  default_generator().set_state(manifest.random);
}

std::vector<CheckpointEntry> list_checkpoints(const fs::path& folder) {
  std::vector<CheckpointEntry> found;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !entry.is_directory(failed)) continue;
    CheckpointEntry checkpoint{.path = entry.path()};
    const char* end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kPrefix.size(), end, checkpoint.step);
    if (read.ec != std::errc{} || read.ptr != end) continue;
    checkpoint.complete = fs::exists(entry.path() / kManifest, failed);
    found.push_back(std::move(checkpoint));
  }
  std::ranges::sort(found, {}, &CheckpointEntry::step);
  return found;
}

void remove_old_checkpoints(const fs::path& folder, const Retention& retention) {
  remove_partial(folder);
  const std::vector<CheckpointEntry> found = list_checkpoints(folder);
  int64_t newer = 0;
  for (auto entry = found.rbegin(); entry != found.rend(); ++entry) {
    const bool milestone =
        entry->complete && retention.keep_every > 0 && entry->step % retention.keep_every == 0;
    const bool recent = entry->complete && newer < retention.keep_last;
    newer += entry->complete ? 1 : 0;
    if (!milestone && !recent) remove_checkpoint(entry->path);
  }
}

}  // namespace lockstep::train
