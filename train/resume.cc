#include "train/resume.h"

#include <fmt/ranges.h>

#include <system_error>

#include "configs/annotated_text.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "train/arithmetic.h"
#include "train/checkpoint.h"
#include "train/report/machine.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;

std::string shown(const std::optional<std::string>& value) { return value.value_or("(not set)"); }

/// Returns "optimizer.learning_rate 0.001 -> 0.002, ...", empty if nothing differs.
std::string config_changes(const fs::path& checkpoint, const config::RunConfig& config) {
  const std::vector<std::string> files = {(checkpoint / "config.txtpb").string()};
  std::vector<std::string> changes;
  for (const config::Difference& found : config::differences(config::load(files), config)) {
    changes.push_back(fmt::format("{} {} -> {}", found.path, shown(found.a), shown(found.b)));
  }
  return fmt::format("{}", fmt::join(changes, ", "));
}

void note_changes(const fs::path& path, const CheckpointManifest& manifest, Trainer& trainer,
                  const config::RunConfig& config, std::vector<std::string>& notes) {
  const std::string changes = config_changes(path, config);
  if (!changes.empty()) notes.push_back("config changed since the checkpoint: " + changes);
  if (manifest.data != trainer.task().data_fingerprint()) {
    notes.push_back(
        "the training data is not what the checkpoint was trained on: losses will differ from an "
        "uninterrupted run's");
  }
  // Earlier versions recorded only the processor's instruction sets.
  const std::string isa = fmt::format("{}", fmt::join(isa_features(), " "));
  const std::string difference =
      manifest.arithmetic.empty()
          ? manifest.isa == isa ? "" : "other instruction sets"
          : arithmetic_difference(manifest.arithmetic, arithmetic_facts(trainer.device()));
  if (!difference.empty()) {
    notes.push_back(
        fmt::format("this process does not compute as the one that wrote the checkpoint ({}): "
                    "losses may differ in their last bits",
                    difference));
  }
}

/// With BITWISE, refuses to continue on arithmetic that would change bits: the user must first
/// give up that promise in the config.
void check_arithmetic(const fs::path& path, const CheckpointManifest& manifest,
                      const Trainer& trainer, const config::RunConfig& config) {
  if (config.reproducibility() != config::BITWISE || manifest.arithmetic.empty()) return;
  const std::string difference =
      arithmetic_difference(manifest.arithmetic, arithmetic_facts(trainer.device()));
  LS_CHECK(
      difference.empty(), CheckpointError,
      "[checkpoint] {} was not written by a process that computes as this one, so that "
      "reproducibility: BITWISE cannot hold. {}. Go on where that is as it was (build, "
      "processor, LOCKSTEP_CPU_CAPABILITY, ONEDNN_MAX_CPU_ISA); or with other last bits: --set "
      "reproducibility=ORDINARY --set train.leaves={}.",
      path.string(), difference, config.train().leaves());
}

void set_aside(const fs::path& path) {
  fs::path damaged = path;
  damaged += ".damaged";
  std::error_code failed;
  fs::remove_all(damaged, failed);  // set aside earlier, at the same step
  fs::rename(path, damaged, failed);
  LS_CHECK(!failed, DataError, "[checkpoint] {} cannot be renamed: {}.", path.string(),
           failed.message());
}

}  // namespace

Resumption resume(Trainer& trainer, const fs::path& folder, const config::RunConfig& config) {
  Resumption resumption;
  std::vector<CheckpointEntry> found = list_checkpoints(folder);
  std::erase_if(found, [](const CheckpointEntry& entry) { return !entry.complete; });
  std::vector<fs::path> damaged;
  for (auto entry = found.rbegin(); entry != found.rend(); ++entry) {
    CheckpointManifest manifest;
    try {
      manifest = verify_checkpoint(entry->path);
    } catch (const CheckpointError& error) {
      resumption.notes.push_back(error.what());
      damaged.push_back(entry->path);
      continue;
    }
    check_arithmetic(entry->path, manifest, trainer, config);
    restore(trainer, entry->path, manifest);
    for (const fs::path& path : damaged) set_aside(path);
    resumption.from = entry->path;
    resumption.notes.push_back(fmt::format("going on from {}: {} steps are done",
                                           entry->path.string(), trainer.steps_done()));
    if (config.parallel().has_power_sgd()) {
      resumption.notes.push_back(
          "parallel.power_sgd begins anew, without the errors that it kept before the checkpoint: "
          "with several ranks losses will differ from an uninterrupted run's");
    }
    note_changes(entry->path, manifest, trainer, config, resumption.notes);
    return resumption;
  }
  LS_CHECK(
      damaged.empty(), CheckpointError,
      "[checkpoint] none of the {} checkpoints in {} is whole:\n  {}\nRemove that folder to start "
      "from the beginning.",
      damaged.size(), folder.string(), fmt::join(resumption.notes, "\n  "));
  return resumption;
}

}  // namespace lockstep::train
