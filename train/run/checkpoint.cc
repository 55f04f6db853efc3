#include "train/run/checkpoint.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"
#include "train/report/machine.h"
#include "train/weights.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kConfig = "config.txtpb";

void check(const std::error_code& failed, const char* what, const fs::path& path) {
  LS_CHECK(!failed, DataError, "[checkpoint] {} cannot be {}: {}.", path.string(), what,
           failed.message());
}

void rename_folder(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  check(failed, "renamed", from);
}

void remove_tree(const fs::path& path) {
  std::error_code failed;
  fs::remove_all(path, failed);
  check(failed, "removed", path);
}

/// Name of a checkpoint while it is removed.
fs::path removed_name(const fs::path& path) {
  return path.parent_path() / fmt::format("{}removed-{}", kPartialPrefix, path.filename().string());
}

/// Takes the name away first: a removal that is interrupted leaves no checkpoint without files. A
/// folder whose files this process may not remove, such as another user's, keeps its name.
void remove_checkpoint(const fs::path& path) {
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    check(std::error_code(errno, std::generic_category()), "removed", path);
  }
  const fs::path removed = removed_name(path);
  remove_tree(removed);
  rename_folder(path, removed);
  sync_folder(path.parent_path());
  remove_tree(removed);
}

/// Runs `remove`, which is not needed for what follows: adds an error's text to `problems`.
template <class Remove>
void try_to(std::vector<std::string>& problems, const Remove& remove) {
  try {
    remove();
  } catch (const DataError& error) {
    problems.push_back(error.what());
  }
}

std::vector<std::string> remove_partial(const fs::path& folder) {
  std::vector<std::string> problems;
  for (const fs::path& path : partial_checkpoints(folder)) {
    try_to(problems, [&] { remove_tree(path); });
  }
  return problems;
}

/// Makes `partial`, which is whole, appear as `path`, in place of what is there. The two names are
/// exchanged where the system can, so that there is a whole checkpoint at every moment.
void replace(const fs::path& partial, const fs::path& path) {
#ifdef RENAME_EXCHANGE
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    sync_folder(path.parent_path());
    return;  // save_checkpoint removes what was there
  }
  const std::error_code failed(errno, std::generic_category());
  if (failed != std::errc::invalid_argument && failed != std::errc::function_not_supported) {
    check(failed, "renamed", partial);
  }
#endif
  const fs::path old = removed_name(path);
  remove_tree(old);
  rename_folder(path, old);
  try {
    rename_folder(partial, path);
  } catch (const DataError&) {
    rename_folder(old, path);
    throw;
  }
  sync_folder(path.parent_path());
}

/// Gives `partial` the name of its step. What may not be replaced keeps that name: then the first
/// free one of "step-00000012.2" and so on is used.
fs::path publish(const fs::path& partial, const fs::path& folder, int64_t step) {
  const std::string name = fmt::format("{}{:08}", kCheckpointPrefix, step);
  for (int copy = 1;; ++copy) {
    const fs::path path = folder / (copy == 1 ? name : fmt::format("{}.{}", name, copy));
    if (!name_exists(path)) {
      rename_folder(partial, path);
      return path;
    }
    const ExaminedCheckpoint there = examine_checkpoint(path);
    const CheckpointState state = there.entry.state;
    const bool same_step = state == CheckpointState::kWhole && there.entry.step == step;
    if (there.entry.is_folder && (same_step || state == CheckpointState::kUnfinished)) {
      replace(partial, path);
      return path;
    }
  }
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
                 const std::function<Tensor(size_t)>& collect, CheckpointManifest& manifest) {
  const std::vector<nn::StoredParameter> weights = trainer.task().model().stored_parameters();
  manifest.files[kWeights] = save_tensors(folder / kWeights, weights, {}, collect);
  const std::vector<nn::StoredParameter> state = trainer.optimizer_state_shapes();
  std::function<Tensor(size_t)> collect_more;
  if (collect) collect_more = [&](size_t number) { return collect(weights.size() + number); };
  if (!state.empty()) {
    manifest.files[kOptimizer] = save_tensors(folder / kOptimizer, state, {}, collect_more);
  }
  write_text(folder / kConfig, config_text);
  trainer.task().describe(folder);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!manifest.files.contains(name)) manifest.files[name] = digest_of_file(entry.path());
  }
}

}  // namespace

fs::path save_checkpoint(const fs::path& folder, Trainer& trainer, const std::string& config_text,
                         const std::function<Tensor(size_t)>& collect) {
  trainer.give_up_next();
  create_folders(folder, "checkpoint");
  (void)remove_partial(folder);  // remove_old_checkpoints tells what cannot be removed
  const fs::path partial =
      folder / fmt::format("{}{}{:08}", kPartialPrefix, kCheckpointPrefix, trainer.steps_done());
  remove_tree(partial);
  std::error_code failed;
  fs::create_directory(partial, failed);
  check(failed, "created", partial);

  CheckpointManifest manifest = manifest_of(trainer);
  fs::path path;
  try {
    write_files(partial, trainer, config_text, collect, manifest);
    // Syncs the folder too, so that the rename below cannot reach the disk before what it names.
    write_text(partial / kCheckpointManifest, format_manifest(manifest));
    path = publish(partial, folder, trainer.steps_done());
  } catch (...) {
    fs::remove_all(partial, failed);  // the disk may be full: free the space at once
    throw;
  }
  sync_folder(folder);
  (void)remove_partial(folder);  // what was replaced
  return path;
}

void restore(Trainer& trainer, const fs::path& path, const CheckpointManifest& manifest) {
  trainer.give_up_next();
  Optimizer& optimizer = trainer.optimizer();
  LS_CHECK(manifest.optimizer == optimizer.kind(), CheckpointError,
           "[checkpoint] {}: its optimizer is {}, the config's {}. Set optimizer.{} {{}} in the "
           "config, or train in another directory.",
           path.string(), manifest.optimizer, optimizer.kind(), manifest.optimizer);
  const bool has_state = !optimizer.state_names().empty();
  if (trainer.is_sharded()) {
    trainer.read_later({path / kWeights, has_state ? path / kOptimizer : fs::path()});
  } else {
    load_weights(trainer.task().model(), path / kWeights);
    if (has_state) load_tensors(path / kOptimizer, optimizer.state());
  }
  optimizer.set_steps(manifest.optimizer_steps);
  if (manifest.grad_scaler) trainer.scaler().load_state(*manifest.grad_scaler);
  trainer.set_position(manifest.position);
  default_generator().set_state(manifest.random);
}

std::vector<std::string> remove_old_checkpoints(const fs::path& folder,
                                                const Retention& retention) {
  std::vector<std::string> problems = remove_partial(folder);
  const auto remove = [&](const CheckpointEntry& entry) {
    try_to(problems, [&] { remove_checkpoint(entry.path); });
  };
  std::vector<CheckpointEntry> found = list_checkpoints(folder);
  std::erase_if(found, [](const CheckpointEntry& entry) { return !entry.is_folder; });
  int64_t newer = 0;
  for (auto entry = found.rbegin(); entry != found.rend(); ++entry) {
    if (entry->state == CheckpointState::kUnfinished && newer > 0) remove(*entry);
    if (!entry->complete) continue;
    const bool milestone = retention.keep_every > 0 && entry->step % retention.keep_every == 0;
    const bool recent = newer < retention.keep_last;
    ++newer;
    if (!milestone && !recent) remove(*entry);
  }
  return problems;
}

}  // namespace lockstep::train
