#include <fmt/core.h>

#include <memory>

#include "core/base/check.h"
#include "core/base/json_line.h"
#include "launcher/checkpoint_convert.h"
#include "launcher/command_line.h"
#include "launcher/exit_code.h"
#include "launcher/verbs.h"
#include "train/checkpoint.h"
#include "train/report/run_directory.h"
#include "train/report/step_line.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

uint64_t bytes_in(const fs::path& folder) {
  uint64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

/// Returns a run's checkpoints, or the single checkpoint that `path` names.
std::vector<train::CheckpointEntry> checkpoints_at(const fs::path& path) {
  std::vector<train::CheckpointEntry> found = train::list_checkpoints(path / "checkpoints");
  if (found.empty()) found = train::list_checkpoints(path);
  if (found.empty() && fs::exists(path / "checkpoint.json")) found = {{0, path, true}};
  LS_CHECK(
      !found.empty(), CheckpointError,
      "[checkpoint] {} holds no checkpoint: expected a run directory, its checkpoints folder or "
      "one of the step-... folders in it.",
      path.string());
  return found;
}

void list(const std::string& path, bool json) {
  for (const train::CheckpointEntry& entry : checkpoints_at(path)) {
    const uint64_t bytes = bytes_in(entry.path);
    if (json) {
      fmt::print("{}\n", JsonLine()
                             .add("path", entry.path.string())
                             .add("step", entry.step)
                             .add("complete", entry.complete)
                             .add("bytes", bytes)
                             .text());
    } else {
      fmt::print("{}  {:>10}  {}\n", entry.path.string(), train::format_bytes(bytes),
                 entry.complete ? "complete" : "incomplete");
    }
  }
}

/// Verifies all checkpoints; then throws ExitStatus(kCheckpoint) if any is damaged.
void verify(const std::string& path) {
  bool whole = true;
  for (const train::CheckpointEntry& entry : checkpoints_at(path)) {
    try {
      const train::CheckpointManifest manifest = train::verify_checkpoint(entry.path);
      size_t tensors = 0;
      for (const auto& [name, digest] : manifest.files) tensors += digest.tensors.size();
      fmt::print("{}  whole: {} files, {} tensors, {} steps done\n", entry.path.string(),
                 manifest.files.size(), tensors, manifest.position.step);
    } catch (const CheckpointError& error) {
      whole = false;
      fmt::print("{}  DAMAGED: {}\n", entry.path.string(), error.what());
    }
  }
  if (!whole) throw ExitStatus(kCheckpoint);
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
      "verify", "Read every byte and compare hashes. Exit status 0: whole, 4: damaged");
  check.option("path", verify_options->path, what).required();
  check.runs([verify_options] { verify(verify_options->path); });

  add_checkpoint_convert(checkpoint);
}

}  // namespace lockstep::launcher
