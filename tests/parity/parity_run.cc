#include "tests/parity/parity_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "core/device/device_runtime.h"
#include "dist/group/thread_group.h"
#include "nn/language_model.h"
#include "nn/models/hugging_face.h"
#include "train/language_task.h"
#include "train/step_share.h"
#include "train/trainer.h"
#include "train/weights.h"
#include "train/weights/safetensors.h"

namespace lockstep {

namespace {

using Json = nlohmann::json;

std::string read_text(const std::filesystem::path& path) {
  try {
    return read_whole_file(path, kMostJsonBytes);
  } catch (const FileError& error) {
    throw DataError(fmt::format("[parity] cannot read {}: {}.", path.string(), error.reason()));
  }
}

Tensor load(const train::SafetensorsFile& file, const std::string& name) {
  const train::TensorRecord& record = file.at(name);
  const Tensor tensor = empty_tensor(record.shape, record.dtype);
  std::memcpy(tensor.data(), record.bytes.data(), record.bytes.size());
  return tensor;
}

/// Compares `ours` * `scale` with the file's tensor for `parameter`: absolute differences, divided
/// by (absolute + relative |want|).
void compare(const train::SafetensorsFile& file, const nn::StoredParameter& parameter,
             const Tensor& ours, double scale, double absolute, double relative, Worst& worst) {
  const Tensor want = load(file, parameter.name);
  const Tensor got = (parameter.transposed ? ours.t() : ours).to(kCPU).contiguous();
  LS_CHECK(same(got.sizes(), want.sizes()), CheckpointError,
           "[parity] {} has another shape: expected {}, got {}.", parameter.name, want.shape(),
           got.shape());
  for (int64_t i = 0; i < want.numel(); ++i) {
    const double expected = want.data<float>()[i];
    const double difference = std::abs(got.data<float>()[i] * scale - expected);
    worst.see(difference / (absolute + relative * std::abs(expected)), parameter.name);
  }
}

/// The batches of PyTorch's recorded run.
class RecordedBatches final : public train::TokenSource {
 public:
  RecordedBatches(const std::filesystem::path& path, int64_t vocabulary) : vocabulary_(vocabulary) {
    const train::SafetensorsFile file(path);
    inputs_ = load(file, "inputs").to(DType::kI64);
    targets_ = load(file, "targets").to(DType::kI64);
    LS_CHECK(inputs_.dim() == 3 && same(inputs_.sizes(), targets_.sizes()), DataError,
             "[parity] {}: expected inputs and targets of sizes [steps, batch, length], got {} and "
             "{}.",
             path.string(), inputs_.shape(), targets_.shape());
  }

  int64_t steps() const { return inputs_.size(0); }
  int64_t batch_size() const { return inputs_.size(1); }
  int64_t length() const { return inputs_.size(2); }

  int64_t vocabulary() const override { return vocabulary_; }
  void sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                std::span<int64_t> targets) const override {
    // Batches are prefetched; those past the last are never used.
    step = std::min(step, steps() - 1);
    const int64_t first = (step * batch_size() + index) * length();
    std::copy_n(inputs_.data<int64_t>() + first, length(), inputs.begin());
    std::copy_n(targets_.data<int64_t>() + first, length(), targets.begin());
  }
  int64_t validation_windows(int64_t) const override { return 0; }
  int64_t validation_window(int64_t, std::span<int64_t>, std::span<int64_t>) const override {
    return 0;
  }
  ContentHash fingerprint() const override { return {}; }

 private:
  int64_t vocabulary_;
  Tensor inputs_;
  Tensor targets_;
};

/// Number of leaves, whose gradients are summed separately: 1 if the ranks take equal numbers of
/// samples, else the largest power of two that divides the batch.
int64_t leaves_for(int64_t batch_size, int ranks) {
  return batch_size % ranks == 0 ? 1 : batch_size & -batch_size;
}

config::RunConfig config_of(const Json& hyperparameters, int64_t batch_size, int ranks) {
  config::RunConfig config;
  config::Origins origins;
  // The config must name a model and data, but the task's are used.
  config::merge_text(config, origins,
                     "model { mlp { inputs: 1 classes: 2 } } data { random {} } train { steps: 1 }",
                     "parity");
  config::TrainConfig& train = *config.mutable_train();
  train.set_batch_size(batch_size);
  train.set_leaves(leaves_for(batch_size, ranks));
  train.set_micro_batch_size(batch_size / train.leaves());
  config::OptimizerConfig& optimizer = *config.mutable_optimizer();
  optimizer.set_learning_rate(hyperparameters.at("lr"));
  optimizer.set_weight_decay(hyperparameters.at("weight_decay"));
  optimizer.set_clip_grad_norm(hyperparameters.at("clip_grad_norm"));
  optimizer.mutable_adamw()->set_beta1(hyperparameters.at("betas").at(0));
  optimizer.mutable_adamw()->set_beta2(hyperparameters.at("betas").at(1));
  optimizer.mutable_adamw()->set_epsilon(hyperparameters.at("eps"));
  config.mutable_schedule()->set_kind(config::ScheduleConfig::CONSTANT);
  config::resolve(config, origins);
  return config;
}

std::unique_ptr<nn::LanguageModel> model_of(const std::filesystem::path& folder, Device device) {
  const DefaultDeviceGuard on_device(device);
  auto model = nn::model_from_hugging_face(read_text(folder / "config.json"));
  train::load_weights(*model, folder / "init.safetensors");
  return model;
}

/// Trains one rank; `group` is null for a single rank.
ParityRun train_rank(const std::filesystem::path& folder, int ranks, Device device,
                     dist::ProcessGroup* group) {
  // Ranks that share a device need separate streams.
  std::optional<StreamGuard> own_queue;
  if (device != kCPU && group != nullptr) own_queue.emplace(get_stream_from_pool(device));
  const Json expected = parse_json(read_text(folder / "expected.json"));
  std::unique_ptr<nn::LanguageModel> model = model_of(folder, device);
  const std::vector<nn::StoredParameter> stored = model->stored_parameters();
  auto batches =
      std::make_unique<RecordedBatches>(folder / "batches.safetensors", model->vocabulary());
  const int64_t steps = batches->steps();
  const auto targets = static_cast<double>(batches->batch_size() * batches->length());

  const config::RunConfig config =
      config_of(expected.at("hyperparameters"), batches->batch_size(), ranks);
  const train::StepShare share = train::share_of_step(config.train(), group);
  const train::LanguageTask::Options options{.length = batches->length(),
                                             .batch_size = batches->batch_size(),
                                             .micro_batch_size = share.micro_batch_size,
                                             .first_sample = share.first_sample,
                                             .end_sample = share.end_sample()};
  train::Trainer trainer = train::Trainer::create(
      config, std::make_unique<train::LanguageTask>(std::move(model), std::move(batches), options),
      group);

  ParityRun run;
  for (int64_t i = 0; i < steps; ++i) {
    const std::string where = fmt::format("step {}", i);
    const train::StepResult step = trainer.step();
    const double want_loss = expected.at("loss_float64").at(i);
    const double want_norm = expected.at("grad_norm_float64").at(i);
    run.loss.see(std::abs(step.loss - want_loss), where);
    run.grad_norm.see(std::abs(step.grad_norm - want_norm) / want_norm, where);
    if (i > 0) continue;
    const train::SafetensorsFile grads(folder / "grads_step0.safetensors");
    for (size_t k = 0; k < stored.size(); ++k) {
      compare(grads, stored[k], trainer.gradients()[k], 1 / targets, ParityRun::kGradientAbsolute,
              ParityRun::kGradientRelative, run.first_gradient);
    }
  }
  const train::SafetensorsFile final_weights(folder / "final.safetensors");
  for (const nn::StoredParameter& parameter : stored) {
    compare(final_weights, parameter, parameter.tensor.detach(), 1.0, 1.0, 0.0, run.final_weight);
  }
  return run;
}

}  // namespace

ParityRun train_beside(const std::filesystem::path& folder, int ranks, Device device) {
  if (device != kCPU) (void)require_runtime(device);
  if (ranks == 1) return train_rank(folder, 1, device, nullptr);
  std::vector<ParityRun> runs(static_cast<size_t>(ranks));
  const auto errors = dist::run_thread_ranks(ranks, [&](dist::ProcessGroup& group) {
    runs[static_cast<size_t>(group.rank())] = train_rank(folder, ranks, device, &group);
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  ParityRun worst;
  for (size_t rank = 0; rank < runs.size(); ++rank) {
    const ParityRun& run = runs[rank];
    const auto see = [&](Worst ParityRun::*what) {
      const Worst& own = run.*what;
      (worst.*what).see(own.value, fmt::format("{} of rank {}", own.where, rank));
    };
    see(&ParityRun::loss);
    see(&ParityRun::grad_norm);
    see(&ParityRun::first_gradient);
    see(&ParityRun::final_weight);
  }
  return worst;
}

}  // namespace lockstep
