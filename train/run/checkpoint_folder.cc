#include "train/run/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;

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
    return;  // publish removes what was there
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

}  // namespace

PartialCheckpoint::PartialCheckpoint(const fs::path& checkpoints, int64_t step)
    : checkpoints_(checkpoints),
      step_(step),
      path_(checkpoints / fmt::format("{}{}{:08}", kPartialPrefix, kCheckpointPrefix, step)) {
  create_folders(checkpoints_, "checkpoint");
  (void)remove_partial(checkpoints_);  // remove_old_checkpoints tells what cannot be removed
  remove_tree(path_);
  std::error_code failed;
  fs::create_directory(path_, failed);
  check(failed, "created", path_);
}

PartialCheckpoint::~PartialCheckpoint() {
  std::error_code ignored;
  if (!published_) fs::remove_all(path_, ignored);
}

fs::path PartialCheckpoint::publish(CheckpointManifest manifest) {
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (!manifest.files.contains(name)) manifest.files[name] = digest_of_file(entry.path());
  }
  // Syncs the folder too, so that the rename below cannot reach the disk before what it names.
  write_text(path_ / kCheckpointManifest, format_manifest(manifest));
  const fs::path path = train::publish(path_, checkpoints_, step_);
  published_ = true;
  sync_folder(checkpoints_);
  (void)remove_partial(checkpoints_);  // what was replaced
  return path;
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
    if (!milestone && !recent && entry->step != retention.best) remove(*entry);
  }
  return problems;
}

void link_best(const fs::path& folder, int64_t step) {
  const std::vector<CheckpointEntry> found = list_checkpoints(folder);
  const auto best = std::find_if(found.rbegin(), found.rend(), [&](const CheckpointEntry& each) {
    return each.complete && each.step == step;
  });
  if (best == found.rend()) return;
  // Removed with what interrupted attempts leave.
  const fs::path partial = folder / (std::string(kPartialPrefix) + "best");
  std::error_code failed;
  fs::remove(partial, failed);
  if (!failed) fs::create_symlink(best->path.filename(), partial, failed);
  if (!failed) fs::rename(partial, folder / "best", failed);
  LS_CHECK(!failed, DataError, "[checkpoint] {} cannot be made a link to {}: {}.",
           (folder / "best").string(), best->path.filename().string(), failed.message());
  sync_folder(folder);
}

}  // namespace lockstep::train
