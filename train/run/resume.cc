#include "train/run/resume.h"

#include <fmt/ranges.h>

#include <system_error>

#include "configs/annotated_text.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/files/folders.h"
#include "train/arithmetic.h"
#include "train/report/machine.h"
#include "train/report/metrics_history.h"
#include "train/run/checkpoint.h"
#include "train/run/time_fit.h"

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

/// Renames a damaged checkpoint to the first free of "step-00000012.damaged", ".damaged-2", ...
void set_aside(const fs::path& path) {
  fs::path damaged = path;
  damaged += kDamagedSuffix;
  const fs::path first = damaged;
  for (int copy = 2; name_exists(damaged); ++copy) {
    damaged = first;
    damaged += fmt::format("-{}", copy);
  }
  std::error_code failed;
  fs::rename(path, damaged, failed);
  LS_CHECK(!failed, DataError, "[checkpoint] {} cannot be renamed: {}.", path.string(),
           failed.message());
}

/// The checkpoint to resume from, and what was found on the way to it. This is the one place that
/// decides what happens with a checkpoint (docs/runs.md).
struct Choice {
  std::optional<ExaminedCheckpoint> use;
  std::vector<fs::path> damaged;        ///< newer than `use`: to be set aside
  std::vector<CheckpointEntry> barred;  ///< newer than `use`, by all that is known of them
  std::vector<std::string> notes;
};

Choice choose(const fs::path& folder) {
  Choice choice;
  const std::vector<CheckpointEntry> found = list_checkpoints(folder);
  for (auto entry = found.rbegin(); entry != found.rend(); ++entry) {
    // An entry that is not whole by its manifest need not be read: that settles its state.
    ExaminedCheckpoint examined =
        entry->complete ? examine_checkpoint(entry->path) : ExaminedCheckpoint{.entry = *entry};
    switch (examined.entry.state) {
      case CheckpointState::kWhole:
        choice.use = std::move(examined);
        std::erase_if(choice.barred, [&](const CheckpointEntry& barred) {
          return barred.step <= choice.use->entry.step;
        });
        return choice;
      case CheckpointState::kDamaged:
        choice.damaged.push_back(entry->path);
        break;
      case CheckpointState::kUnreadable:
      case CheckpointState::kNewer:
        choice.barred.push_back(examined.entry);
        break;
      case CheckpointState::kUnfinished:
        break;
    }
    choice.notes.push_back(examined.entry.problem);
  }
  for (const fs::path& path : checkpoints_set_aside(folder)) {
    choice.notes.push_back(fmt::format("[checkpoint] {} was set aside as damaged.", path.string()));
  }
  return choice;
}

/// Refuses to go on from an older checkpoint, or from none, where that would lose steps.
void refuse_losses(const Choice& choice, const fs::path& folder) {
  LS_CHECK(
      choice.use || choice.notes.empty(), CheckpointError,
      "[checkpoint] none of the {} checkpoints in {} can be used, and training does not start "
      "again at step 0 where there are some:\n  {}\nNothing was changed. Repair what is named, "
      "or name another --run-dir to start from the beginning.",
      choice.notes.size(), folder.string(), fmt::join(choice.notes, "\n  "));
  if (choice.barred.empty()) return;
  std::vector<std::string> problems;
  for (const CheckpointEntry& entry : choice.barred) problems.push_back(entry.problem);
  throw CheckpointError(fmt::format(
      "[checkpoint] the newest checkpoint that can be used is {}, and later steps may be lost by "
      "going on from it:\n  {}\nNothing was changed. Repair what is named and start again; or, to "
      "give it up, move it to another folder.",
      choice.use->entry.path.string(), fmt::join(problems, "\n  ")));
}

/// What shows that the run had a checkpoint; empty if nothing does.
std::string sign_of_history(const RunDirectory& directory) {
  const fs::path metrics = directory.metrics();
  if (name_exists(directory.weights())) {
    return fmt::format("{} holds the weights of its end", directory.weights().string());
  }
  if (name_exists(directory.first_save())) {
    return fmt::format("{} says that one was written", directory.first_save().string());
  }
  if (!name_exists(metrics)) return "";
  const std::vector<MetricsRecord> records = read_records(metrics);
  if (records.empty()) return "";
  const int64_t last = records.back().step;
  // Written before the first step.
  if (!name_exists(directory.config())) {
    return fmt::format("step {} was trained in {} and {} is missing", last, metrics.string(),
                       directory.config().filename().string());
  }
  const std::vector<std::string> files = {directory.config().string()};
  const config::CheckpointConfig checkpoint = config::load(files).checkpoint();
  const int64_t every = checkpoint.every_steps();
  // The checkpoint of a step is written before the next step is recorded; beside training, before
  // the one after the next checkpoint's.
  const int64_t without = checkpoint.asynchronous() ? 2 * every : every;
  if (every <= 0 || last <= without) return "";
  return fmt::format("step {} was trained in {} and one is written every {} steps", last,
                     metrics.string(), every);
}

}  // namespace

Resumption resume(Trainer& trainer, const fs::path& folder, const config::RunConfig& config) {
  const Choice choice = choose(folder);
  refuse_losses(choice, folder);
  Resumption resumption;
  if (!choice.use) return resumption;
  const fs::path& path = choice.use->entry.path;
  const CheckpointManifest& manifest = *choice.use->manifest;
  resumption.notes = choice.notes;
  check_arithmetic(path, manifest, trainer, config);
  restore(trainer, path, manifest);
  const bool ends_early = manifest.early_end && config.schedule().fit_time_limit();
  if (ends_early) trainer.end_early(*manifest.early_end);
  for (const fs::path& damaged : choice.damaged) set_aside(damaged);
  resumption.from = path;
  if (const auto found = manifest.files.find("model.safetensors"); found != manifest.files.end()) {
    resumption.weights = found->second;
  }
  resumption.held_out = manifest.held_out;
  resumption.notes.push_back(
      fmt::format("going on from {}: {} steps are done", path.string(), trainer.steps_done()));
  if (config.parallel().has_power_sgd()) {
    resumption.notes.push_back(
        "parallel.power_sgd begins anew, without the errors that it kept before the checkpoint: "
        "with several ranks losses will differ from an uninterrupted run's");
  }
  note_changes(path, manifest, trainer,
               ends_early ? config_of_early_end(config, *manifest.early_end) : config,
               resumption.notes);
  return resumption;
}

void require_no_history(const RunDirectory& directory) {
  const std::string sign = sign_of_history(directory);
  LS_CHECK(sign.empty(), CheckpointError,
           "[checkpoint] {} has no checkpoint, but {}: expected one. It was removed, or the "
           "disk lost it. Nothing was changed. Put it back, or name another --run-dir to start "
           "from the beginning.",
           directory.checkpoints().string(), sign);
}

}  // namespace lockstep::train
