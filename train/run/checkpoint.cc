#include "train/run/checkpoint.h"

#include <fmt/ranges.h>

#include <utility>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"
#include "core/base/json_line.h"
#include "nn/language_model.h"
#include "train/local_steps.h"
#include "train/report/machine.h"
#include "train/weights.h"
#include "train/weights/adapter_files.h"
#include "train/weights/multiplier_files.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kConfig = "config.txtpb";

/// Where the tensors of a checkpoint are, as StateFiles names them.
StateFiles files_of(const fs::path& path, const CheckpointManifest& manifest, bool has_state) {
  if (manifest.shards) {
    const bool took_local_steps = manifest.shards->strategy == kLocalSgd;
    return {path, has_state || took_local_steps ? path : fs::path(),
            took_local_steps ? manifest.shards->world : 0};
  }
  return {path / kWeights, has_state ? path / kOptimizer : fs::path()};
}

/// The optimizer's state belongs to the multipliers with which its gradients were computed.
void check_multipliers(const nn::Module& model, const fs::path& path) {
  const auto* const language = dynamic_cast<const nn::LanguageModel*>(&model);
  LS_CHECK(language == nullptr || multipliers_of(path).computes_as(language->mup()),
           CheckpointError,
           "[checkpoint] {}: its model was scaled otherwise: expected the values of model.mup with "
           "which it was trained. Set them as {} has them, or train in another directory.",
           path.string(), (path / kConfig).string());
}

}  // namespace

CheckpointRecord record_of(Trainer& trainer, const std::string& config_text) {
  CheckpointRecord record{.manifest = {}, .config_text = config_text, .task = &trainer.task()};
  CheckpointManifest& manifest = record.manifest;
  manifest.lockstep_version = LOCKSTEP_VERSION;
  manifest.optimizer = trainer.optimizer().kind();
  manifest.data = trainer.task().data_fingerprint();
  manifest.samples_per_batch = trainer.samples_per_batch();
  manifest.isa = fmt::format("{}", fmt::join(isa_features(), " "));
  manifest.arithmetic = arithmetic_facts(trainer.device());
  update(record, trainer);
  return record;
}

void update(CheckpointRecord& record, Trainer& trainer) {
  trainer.give_up_next();
  CheckpointManifest& manifest = record.manifest;
  manifest.position = trainer.position();
  manifest.optimizer_steps = trainer.optimizer().steps();
  if (trainer.scaler().is_enabled()) manifest.grad_scaler = trainer.scaler().state();
  if (trainer.spikes().rule().action != SpikeAction::kKeep) {
    manifest.loss_spike = trainer.spikes().memory();
  }
  manifest.early_end = trainer.early_end();
  manifest.random = default_generator().state();
}

void describe_checkpoint(const CheckpointRecord& record, const fs::path& folder) {
  write_text(folder / kConfig, record.config_text);
  record.task->describe(folder);
  write_adapter_config(record.task->model(), folder);
  mark_multipliers(record.task->model(), folder);
}

WholeState whole_state(Trainer& trainer, std::function<Tensor(size_t)> values) {
  return {.weights = trainer.task().model().stored_parameters(),
          .optimizer = trainer.optimizer_state_shapes(),
          .values = std::move(values)};
}

fs::path write_checkpoint(const fs::path& folder, const CheckpointRecord& record,
                          const WholeState& state) {
  PartialCheckpoint partial(folder, record.step());
  CheckpointManifest manifest = record.manifest;
  manifest.files[kWeights] =
      save_tensors(partial.path() / kWeights, state.weights, {}, state.values);
  std::function<Tensor(size_t)> more;
  if (state.values)
    more = [&](size_t number) { return state.values(state.weights.size() + number); };
  if (!state.optimizer.empty()) {
    manifest.files[kOptimizer] =
        save_tensors(partial.path() / kOptimizer, state.optimizer, {}, more);
  }
  describe_checkpoint(record, partial.path());
  return partial.publish(std::move(manifest));
}

std::vector<std::string> after_save(const RunDirectory& directory, int64_t step,
                                    const Retention& retention) {
  if (!name_exists(directory.first_save())) {
    write_text(directory.first_save(), JsonLine().add("step", step).text() + "\n");
  }
  if (retention.best == step) link_best(directory.checkpoints(), step);
  return remove_old_checkpoints(directory.checkpoints(), retention);
}

fs::path save_checkpoint(const fs::path& folder, Trainer& trainer, const std::string& config_text,
                         const std::function<Tensor(size_t)>& collect) {
  return write_checkpoint(folder, record_of(trainer, config_text), whole_state(trainer, collect));
}

void restore(Trainer& trainer, const fs::path& path, const CheckpointManifest& manifest) {
  trainer.give_up_next();
  Optimizer& optimizer = trainer.optimizer();
  LS_CHECK(manifest.optimizer == optimizer.kind(), CheckpointError,
           "[checkpoint] {}: its optimizer is {}, the config's {}. Set optimizer.{} {{}} in the "
           "config, or train in another directory.",
           path.string(), manifest.optimizer, optimizer.kind(), manifest.optimizer);
  check_multipliers(trainer.task().model(), path);
  const StateFiles files = files_of(path, manifest, !optimizer.state_names().empty());
  LS_CHECK(
      files.ranks == 0 || trainer.takes_local_steps(), CheckpointError,
      "[checkpoint] {}: {} ranks took steps of their own (parallel.local_sgd), each with an "
      "optimizer's state: expected several ranks and that option. Set it; or begin another run "
      "from these weights, with model.weights.",
      path.string(), files.ranks);
  if (trainer.spreads_state()) {
    trainer.read_later(files);
  } else {
    load_weights(trainer.task().model(), files.weights, &manifest.files);
    if (!files.optimizer.empty()) {
      load_tensors(files.optimizer, optimizer.state(), &manifest.files);
    }
  }
  optimizer.set_steps(manifest.optimizer_steps);
  if (manifest.grad_scaler) trainer.scaler().load_state(*manifest.grad_scaler);
  trainer.spikes().remember(manifest.loss_spike.value_or(SpikeMemory()));
  trainer.set_position(manifest.position);
  default_generator().set_state(manifest.random);
}

}  // namespace lockstep::train
