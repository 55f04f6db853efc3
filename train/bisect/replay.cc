#include "train/bisect/replay.h"

#include <cstring>

#include "autograd/grad_mode.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/tensor/random_state_guard.h"
#include "train/build.h"
#include "train/run/checkpoint.h"

namespace lockstep::train {
namespace {

config::RunConfig replayed(const RecordedRun& run, const RecordedRun& recompute_like) {
  config::RunConfig config = run.config();
  LS_CHECK(run.ranks == 1 || config.reproducibility() == config::BITWISE, ConfigError,
           "[bisect] {} was computed by {} ranks, and its bits depend on their number: expected "
           "one rank, or reproducibility: BITWISE, to compute it again in one process. Repeat the "
           "runs with one of these.",
           run.name, run.ranks);
  const config::ModelConfig other = recompute_like.config().model();
  config.mutable_model()->set_recompute(other.recompute());
  config.mutable_model()->set_checkpoint_every(other.checkpoint_every());
  // One rank shards nothing and sends nothing.
  config.mutable_parallel()->clear_communication_hook();
  return config;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor here_a = a.detach().to(kCPU).contiguous();
  const Tensor here_b = b.detach().to(kCPU).contiguous();
  return here_a.dtype() == here_b.dtype() && here_a.shape() == here_b.shape() &&
         std::memcmp(here_a.data(), here_b.data(), here_a.nbytes()) == 0;
}

}  // namespace

Replay::Replay(const RecordedRun& run, const RecordedRun& recompute_like) : run_(run) {
  const RandomStateGuard random_state_stays;
  config::RunConfig config = replayed(run, recompute_like);
  trainer_ = std::make_unique<Trainer>(Trainer::create(config));
  micro_batches_ = config.train().batch_size() / config.train().micro_batch_size();
  leaves_ = config.train().leaves();
  random_ = default_generator().state();
  begin_ = state_now();
}

Replay::~Replay() = default;

std::vector<nn::StoredParameter> Replay::tensors() {
  std::vector<nn::StoredParameter> all;
  for (nn::StoredParameter& each : trainer_->task().model().stored_parameters()) {
    each.name = "weight " + each.name;
    all.push_back(std::move(each));
  }
  for (nn::StoredParameter& each : trainer_->optimizer().state()) {
    each.name = "optimizer state " + each.name;
    all.push_back(std::move(each));
  }
  return all;
}

Replay::State Replay::state_now() {
  const NoGradGuard no_grad;
  State state{.position = trainer_->position(),
              .updates = trainer_->optimizer().steps(),
              .random = random_,
              .scaler = {},
              .tensors = {}};
  if (trainer_->scaler().is_enabled()) state.scaler = trainer_->scaler().state();
  for (const nn::StoredParameter& each : tensors()) {
    state.tensors.push_back(each.tensor.detach().clone());
  }
  return state;
}

void Replay::use(const State& state) {
  const NoGradGuard no_grad;
  const std::vector<nn::StoredParameter> all = tensors();
  for (size_t i = 0; i < all.size(); ++i) (void)all[i].tensor.copy_(state.tensors[i]);
  trainer_->optimizer().set_steps(state.updates);
  if (state.scaler) trainer_->scaler().load_state(*state.scaler);
  trainer_->set_position(state.position);
  random_ = state.random;
}

void Replay::restart() {
  LS_ASSERT(!begin_.tensors.empty());
  use(begin_);
}

void Replay::restore_checkpoint(const std::filesystem::path& path) {
  const RandomStateGuard random_state_stays;
  const CheckpointManifest manifest = verify_checkpoint(path);
  LS_CHECK(manifest.data == data(), DataError,
           "[bisect] the data of {} is not what its checkpoint {} was trained on: expected the "
           "same. Put back the files that its config names, or start in the folder that it was "
           "started in.",
           run_.name, path.string());
  restore(*trainer_, path, manifest);
  random_ = default_generator().state();
}

StepResult Replay::step(StepWatch* watch) {
  const RandomStateGuard other_stays;
  default_generator().set_state(random_);
  trainer_->set_watch(watch);
  const StepResult result = trainer_->step();
  trainer_->set_watch(nullptr);
  random_ = default_generator().state();
  return result;
}

void Replay::save() {
  begin_ = {};
  saved_ = state_now();
}
void Replay::go_back() { use(saved_); }

std::string Replay::state_difference(Replay& a, Replay& b) {
  const std::vector<nn::StoredParameter> of_a = a.tensors(), of_b = b.tensors();
  if (of_a.size() != of_b.size()) return "the number of tensors";
  for (size_t i = 0; i < of_a.size(); ++i) {
    if (of_a[i].name != of_b[i].name || !same_bits(of_a[i].tensor, of_b[i].tensor)) {
      return of_a[i].name;
    }
  }
  if (a.trainer_->position() != b.trainer_->position()) return "the position in the data";
  if (a.trainer_->optimizer().steps() != b.trainer_->optimizer().steps()) {
    return "the optimizer's number of steps";
  }
  return "";
}

}  // namespace lockstep::train
