#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <system_error>

#include "core/base/check.h"
#include "core/base/json_line.h"
#include "launcher/checkpoint_convert.h"
#include "launcher/command_line.h"
#include "launcher/exit_code.h"
#include "launcher/verbs.h"
#include "train/report/run_directory.h"
#include "train/report/run_lock.h"
#include "train/report/step_line.h"
#include "train/run/checkpoint_state.h"
#include "train/run/consolidate.h"
#include "train/run/final_model.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

/// Size of all files in a folder; of what cannot be read, nothing.
uint64_t bytes_in(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code failed;
  fs::recursive_directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    std::error_code ignored;
    const uint64_t size = entry->is_regular_file(ignored) ? entry->file_size(ignored) : 0;
    if (!ignored) bytes += size;
  }
  return bytes;
}

/// What a path names: a run with its checkpoints, or a single checkpoint of it.
struct Named {
  std::optional<train::RunDirectory> run;
  fs::path folder;  ///< of the checkpoints; empty for a single one
  std::vector<train::CheckpointEntry> checkpoints;
};

Named named_by(fs::path path) {
  if (!path.has_filename()) path = path.parent_path();
  const auto run_at = [](const fs::path& folder) {
    const fs::path run = folder.empty() ? "." : folder;
    return train::RunDirectory::is_run(run) ? std::optional(train::RunDirectory::open(run))
                                            : std::nullopt;
  };
  Named named{.run = run_at(path), .folder = path / "checkpoints"};
  named.checkpoints = train::list_checkpoints(named.folder);
  if (!named.checkpoints.empty() || (named.run && named.run->path() == path)) return named;
  named = {.run = run_at(path.parent_path()), .folder = path};
  named.checkpoints = train::list_checkpoints(named.folder);
  if (!named.checkpoints.empty()) return named;
  named = {.run = run_at(path.parent_path().parent_path()), .folder = {}};
  const train::CheckpointEntry entry = train::examine_checkpoint(path).entry;
  LS_CHECK(
      fs::exists(path) && entry.state != train::CheckpointState::kUnfinished, CheckpointError,
      "[checkpoint] {} holds no checkpoint: expected a run directory, its checkpoints folder or "
      "one of the step-... folders in it.",
      path.string());
  named.checkpoints = {entry};
  return named;
}

void list(const std::string& path, bool json) {
  for (const train::CheckpointEntry& entry : named_by(path).checkpoints) {
    const uint64_t bytes = bytes_in(entry.path);
    if (json) {
      fmt::print("{}\n", JsonLine()
                             .add("path", entry.path.string())
                             .add("step", entry.step)
                             .add("complete", entry.complete)
                             .add("bytes", bytes)
                             .add("ranks", int64_t{entry.ranks})
                             .add("state", train::name(entry.state))
                             .text());
    } else {
      fmt::print("{}  {:>10}  {}\n", entry.path.string(), train::format_bytes(bytes),
                 !entry.complete    ? train::name(entry.state)
                 : entry.ranks == 1 ? "complete"
                                    : fmt::format("complete, in shards of {} ranks", entry.ranks));
    }
  }
}

/// Verifies one checkpoint and says what it is. Returns false if it cannot be used.
bool verify(const fs::path& path, bool is_trained) {
  const train::ExaminedCheckpoint found = train::examine_checkpoint(path);
  if (found.manifest) {
    size_t tensors = 0;
    for (const auto& [name, digest] : found.manifest->files) tensors += digest.tensors.size();
    fmt::print("{}  whole: {} files, {} tensors, {} steps done\n", path.string(),
               found.manifest->files.size(), tensors, found.manifest->position.step);
    return true;
  }
  std::error_code ignored;
  if (is_trained && !fs::exists(fs::symlink_status(path, ignored))) {
    fmt::print("{}  removed meanwhile by the run\n", path.string());
    return true;
  }
  fmt::print("{}  {}: {}\n", path.string(), train::name(found.entry.state), found.entry.problem);
  return false;
}

/// Verifies the weights of a finished run. Returns false if they are damaged.
bool verify_weights(const train::RunDirectory& run) {
  std::error_code ignored;
  const std::string path = run.weights().string();
  const bool is_there = fs::exists(fs::symlink_status(run.weights(), ignored));
  try {
    const train::ModelVerification found = train::verify_model(run);
    if (found.has_manifest) {
      fmt::print("{}  whole: weights of the run's end, {} files, {} tensors\n", path, found.files,
                 found.tensors);
    } else if (is_there) {
      fmt::print("{}  not verified: it has no manifest beside it\n", path);
    }
    return true;
  } catch (const CheckpointError& error) {
    fmt::print("{}  {}: {}\n", path, train::name(train::state_after(error)), error.what());
    return false;
  }
}

/// Verifies all checkpoints and the final weights; then throws ExitStatus(kCheckpoint) if any
/// cannot be used.
void verify(const std::string& path) {
  const Named named = named_by(path);
  const auto holder = named.run ? train::RunLock::holder(*named.run) : std::nullopt;
  bool whole = true;
  for (const train::CheckpointEntry& entry : named.checkpoints) {
    whole = verify(entry.path, holder.has_value()) && whole;
  }
  if (!named.folder.empty()) {
    for (const fs::path& partial : train::partial_checkpoints(named.folder)) {
      fmt::print("{}  {}\n", partial.string(),
                 holder ? fmt::format("being written, or removed, by {}", *holder)
                        : "left by a process that was stopped; the next one removes it");
    }
  }
  if (named.run && !named.folder.empty()) whole = verify_weights(*named.run) && whole;
  if (holder) fmt::print("{}  is being trained by {}\n", named.run->path().string(), *holder);
  if (!whole) throw ExitStatus(kCheckpoint);
}

/// The checkpoint that a path names: of a run the newest that is complete.
fs::path newest_at(const std::string& path) {
  const std::vector<train::CheckpointEntry> found = named_by(path).checkpoints;
  const auto newest =
      std::find_if(found.rbegin(), found.rend(), [](const auto& entry) { return entry.complete; });
  LS_CHECK(newest != found.rend(), CheckpointError, "[checkpoint] {} holds no complete checkpoint.",
           path);
  return newest->path;
}

void add_consolidate(const Verb& parent) {
  struct Options {
    std::string source;
    std::string destination;
  };
  auto options = std::make_shared<Options>();
  const Verb verb = parent.verb(
      "consolidate", "Write a checkpoint in shards as one rank writes it, one tensor at a time");
  verb.option("source", options->source, "Run directory (its newest checkpoint), or one checkpoint")
      .required();
  verb.option("destination", options->destination, "Folder to write. Must not exist").required();
  verb.runs([options] {
    const fs::path source = newest_at(options->source);
    train::consolidate(source, options->destination);
    fmt::print("{}: {} as one rank writes it\n", options->destination, source.string());
  });
}

}  // namespace

void add_checkpoint(const Verb& app) {
  struct Options {
    std::string path;
    bool json = false;
  };
  const Verb checkpoint = app.verb("checkpoint", "List, check and convert checkpoints");
  checkpoint.requires_verb();
  const char* what = "Run directory, or one checkpoint";

  auto list_options = std::make_shared<Options>();
  const Verb ls = checkpoint.verb("ls", "The checkpoints of a run");
  ls.option("path", list_options->path, what).required();
  ls.flag("--json", list_options->json, "One JSON object a line");
  ls.runs([list_options] { list(list_options->path, list_options->json); });

  auto verify_options = std::make_shared<Options>();
  const Verb check = checkpoint.verb(
      "verify",
      "Read every byte of checkpoints and final weights and compare hashes. Exit status 0: whole, "
      "4: not");
  check.option("path", verify_options->path, what).required();
  check.runs([verify_options] { verify(verify_options->path); });

  add_consolidate(checkpoint);
  add_checkpoint_convert(checkpoint);
}

}  // namespace lockstep::launcher
