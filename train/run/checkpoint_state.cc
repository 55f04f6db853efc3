#include "train/run/checkpoint_state.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <system_error>
#include <tuple>

#include "core/base/check.h"
#include "core/base/files/folders.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "train/weights/read_errors.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;

/// The names in a folder. Throws UnreadableError: a folder that cannot be listed is not empty.
std::vector<fs::path> names_in(const fs::path& folder) {
  return reading([&] {
    std::vector<fs::path> found;
    if (!name_exists(folder)) return found;
    std::error_code failed;
    fs::directory_iterator entry(folder, failed);
    for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
      found.push_back(entry->path());
    }
    LS_CHECK(!failed, DataError, "[checkpoint] {} cannot be listed: {}.", folder.string(),
             failed.message());
    return found;
  });
}

/// The step of "step-00000012" and "step-00000012.2"; nothing for other names.
std::optional<int64_t> step_in(const std::string& name) {
  if (!name.starts_with(kCheckpointPrefix)) return std::nullopt;
  const char* end = name.data() + name.size();
  int64_t step = 0;
  auto read = std::from_chars(name.data() + kCheckpointPrefix.size(), end, step);
  if (read.ec != std::errc{}) return std::nullopt;
  if (read.ptr != end && *read.ptr == '.') {
    int64_t copy = 0;
    read = std::from_chars(read.ptr + 1, end, copy);
  }
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return step;
}

/// Throws UnreadableError, UnfinishedError, or as parse_manifest.
CheckpointManifest read_manifest(const fs::path& path) {
  const fs::path file = path / kCheckpointManifest;
  const std::string text = reading([&] {
    std::error_code failed;
    const fs::file_status status = fs::status(path, failed);
    LS_CHECK(status.type() != fs::file_type::not_found, DataError,
             "[checkpoint] {} leads nowhere: its folder is missing, or on a disk that is.",
             path.string());
    LS_CHECK(status.type() != fs::file_type::none, DataError, "[checkpoint] {}: {}.", path.string(),
             failed.message());
    LS_CHECK(fs::is_directory(status), DataError,
             "[checkpoint] {} is no folder, so it is no checkpoint.", path.string());
    if (!name_exists(file)) {
      throw UnfinishedError(fmt::format("[checkpoint] {} has no {}: it was not written to its end.",
                                        path.string(), kCheckpointManifest));
    }
    return read_whole_file(file, kMostJsonBytes);
  });
  return parse_manifest(text, file.string());
}

/// Says what the checkpoint is: runs `read`, which returns its manifest or throws.
template <class Read>
ExaminedCheckpoint classified(const fs::path& path, const Read& read) {
  ExaminedCheckpoint found;
  CheckpointEntry& entry = found.entry;
  entry.path = path;
  entry.step = step_in(path.filename().string()).value_or(0);
  std::error_code ignored;
  entry.is_folder = fs::is_directory(fs::symlink_status(path, ignored));
  try {
    found.manifest = read();
    entry.step = found.manifest->position.step;
    entry.state = CheckpointState::kWhole;
    entry.complete = true;
    entry.after_error = found.manifest->after_error;
    if (found.manifest->shards) entry.ranks = found.manifest->shards->world;
    return found;
  } catch (const CheckpointError& error) {
    entry.state = state_after(error);
    entry.problem = error.what();
  }
  return found;
}

}  // namespace

CheckpointState state_after(const CheckpointError& error) {
  if (dynamic_cast<const UnreadableError*>(&error) != nullptr) return CheckpointState::kUnreadable;
  if (dynamic_cast<const NewerVersionError*>(&error) != nullptr) return CheckpointState::kNewer;
  if (dynamic_cast<const UnfinishedError*>(&error) != nullptr) return CheckpointState::kUnfinished;
  return CheckpointState::kDamaged;
}

std::vector<CheckpointEntry> list_checkpoints(const fs::path& folder) {
  std::vector<CheckpointEntry> found;
  for (const fs::path& path : names_in(folder)) {
    if (!step_in(path.filename().string())) continue;
    found.push_back(classified(path, [&] { return read_manifest(path); }).entry);
  }
  // If two have the same step, the one that its manifest calls complete counts as the newer.
  std::ranges::sort(found, {}, [](const CheckpointEntry& entry) {
    return std::tuple(entry.step, entry.complete, entry.path);
  });
  return found;
}

std::optional<CheckpointEntry> newest_whole(const fs::path& folder) {
  const std::vector<CheckpointEntry> found = list_checkpoints(folder);
  const auto newest =
      std::find_if(found.rbegin(), found.rend(), std::mem_fn(&CheckpointEntry::complete));
  return newest == found.rend() ? std::nullopt : std::optional(*newest);
}

ExaminedCheckpoint examine_checkpoint(const fs::path& path) {
  ExaminedCheckpoint found = classified(path, [&] { return verify_checkpoint(path); });
  if (found.entry.state != CheckpointState::kWhole) {
    // The contents are at fault, but the manifest may still say which step they are of.
    const ExaminedCheckpoint by_manifest = classified(path, [&] { return read_manifest(path); });
    found.entry.step = by_manifest.entry.step;
  }
  return found;
}

CheckpointManifest verify_checkpoint(const fs::path& path) {
  CheckpointManifest manifest = read_manifest(path);
  for (const auto& [name, digest] : manifest.files) {
    check_digest(path / name, digest, digest_of_file(path / name));
  }
  return manifest;
}

std::vector<fs::path> partial_checkpoints(const fs::path& folder) {
  std::vector<fs::path> found = names_in(folder);
  std::erase_if(found, [](const fs::path& path) {
    return !path.filename().string().starts_with(kPartialPrefix);
  });
  return found;
}

std::vector<fs::path> checkpoints_set_aside(const fs::path& folder) {
  std::vector<fs::path> found = names_in(folder);
  std::erase_if(found, [](const fs::path& path) {
    const std::string name = path.filename().string();
    return !name.starts_with(kCheckpointPrefix) || name.find(kDamagedSuffix) == name.npos;
  });
  return found;
}

const char* name(CheckpointState state) {
  switch (state) {
    case CheckpointState::kWhole:
      return "whole";
    case CheckpointState::kDamaged:
      return "DAMAGED";
    case CheckpointState::kUnreadable:
      return "UNREADABLE";
    case CheckpointState::kNewer:
      return "OF A NEWER VERSION";
    case CheckpointState::kUnfinished:
      return "UNFINISHED";
  }
  return "";
}

}  // namespace lockstep::train
