#include "train/bisect/replay.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "autograd/grad_mode.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/tensor/random_state_guard.h"
#include "train/build.h"
#include "train/gradient_options.h"
#include "train/run/checkpoint.h"

namespace lockstep::train {
namespace {

using config::ParallelConfig;

/// What of a run threads cannot do as its ranks did; empty if they can do all of it. Without
/// BITWISE alone, as the ranks of other runs change no bit.
std::string obstacle_to_threads(const RecordedRun& run, const config::RunConfig& config) {
  const ParallelConfig& parallel = config.parallel();
  if (parse_device(config.device()).type == DeviceType::kCUDA) {
    return "the communication library of its GPUs adds in an order of its own";
  }
  if (!run.always_so) return "its starts had other numbers of ranks, or of hosts";
  if (parallel.has_elastic()) return "with parallel.elastic their number may have changed";
  if (parallel.has_local_sgd()) {
    return "with parallel.local_sgd ranks take steps of their own, from weights that are averaged "
           "beside them";
  }
  if (parallel.has_power_sgd()) {
    return "parallel.power_sgd keeps parts of gradients from step to step that no checkpoint has";
  }
  if (parallel.sync_batch_norm()) {
    return "with parallel.sync_batch_norm a micro-batch depends on those of the other ranks";
  }
  if (config.optimizer().optimizer_in_backward()) {
    return "with optimizer.optimizer_in_backward the time of messages decides when calls are made";
  }
  return "";
}

void check_threads_can(const RecordedRun& run, const config::RunConfig& config) {
  const std::string obstacle = obstacle_to_threads(run, config);
  LS_CHECK(obstacle.empty(), ConfigError,
           "[bisect] {} was computed by {} ranks, its bits depend on them, and they cannot be "
           "computed again in one process: {}. Repeat the runs with one rank or with "
           "reproducibility: BITWISE, or compare them within a --tolerance.",
           run.name, run.ranks, obstacle);
}

/// Makes one rank do the micro-batches of more ranks than leaves, which may be smaller.
void take_micro_batches(int ranks, config::TrainConfig& train) {
  const int64_t size = share_of_step(train, 0, ranks).micro_batch_size;
  if (size == train.micro_batch_size()) return;
  train.set_micro_batch_size(size);
  train.set_leaves(1);
}

config::RunConfig replayed(const RecordedRun& run, const RecordedRun& recompute_like,
                           const ReplayOptions& options) {
  config::RunConfig config = run.config();
  const config::ModelConfig other = recompute_like.config().model();
  config.mutable_model()->set_recompute(other.recompute());
  config.mutable_model()->set_checkpoint_every(other.checkpoint_every());
  config.clear_audit();  // computes a micro-batch once more beside the step
  ParallelConfig& parallel = *config.mutable_parallel();
  if (options.by_one_rank || replayed_ranks(run) == 1) {
    // One rank shards nothing and sends nothing.
    parallel.clear_communication_hook();
    take_micro_batches(run.ranks, *config.mutable_train());
    return config;
  }
  check_threads_can(run, config);
  // Threads share the one that runs backward of a device; the processor computes the same bits.
  config.set_device("cpu");
  const bool divided_by_hosts =
      parallel.strategy() == ParallelConfig::HYBRID_SHARD && parallel.shard_size() == 0;
  if (divided_by_hosts && !run.hosts.empty()) {
    parallel.set_shard_size(std::ranges::count(run.hosts, run.hosts.front()));
  }
  return config;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor here_a = a.detach().to(kCPU).contiguous();
  const Tensor here_b = b.detach().to(kCPU).contiguous();
  return here_a.dtype() == here_b.dtype() && here_a.shape() == here_b.shape() &&
         std::memcmp(here_a.data(), here_b.data(), here_a.nbytes()) == 0;
}

/// The trainer of a rank where the run begins.
std::unique_ptr<Trainer> first_trainer(const config::RunConfig& config, dist::ProcessGroup* group) {
  // Of a sharded model the ranks read the initial weights together.
  config::RunConfig built = config;
  const bool sharded = is_sharded(config, group);
  if (sharded) built.mutable_model()->clear_weights();
  auto trainer = std::make_unique<Trainer>(
      Trainer::create(config, build_task(built, share_of_step(config.train(), group)), group));
  trainer->scatter_weights();
  if (sharded && !config.model().weights().empty()) {
    const StateFiles files{.weights = config.model().weights(), .optimizer = {}};
    trainer->read_later(files);
    trainer->read_state(files);
  }
  return trainer;
}

}  // namespace

int replayed_ranks(const RecordedRun& run) {
  return run.config().reproducibility() == config::BITWISE ? 1 : run.ranks;
}

Replay::Replay(const RecordedRun& run, const RecordedRun& recompute_like,
               const ReplayOptions& options)
    : run_(run) {
  const config::RunConfig config = replayed(run, recompute_like, options);
  const int ranks = options.by_one_rank ? 1 : replayed_ranks(run);
  threads_ = std::make_unique<RankThreads>(ranks, device_of(config), run.hosts);
  ranks_.resize(static_cast<size_t>(threads_->size()));
  threads_->run([&](int number, dist::ProcessGroup* group) {
    const RandomStateGuard random_state_stays;
    Rank& rank = ranks_[static_cast<size_t>(number)];
    rank.trainer = first_trainer(config, group);
    rank.random = default_generator().state();
    rank.begin = rank.state_now(number);
  });
  micro_batches_ = config.train().batch_size() / micro_batch_size();
  leaves_ = config.train().leaves();
}

Replay::~Replay() = default;

void Replay::on_ranks(const std::function<void(Rank& rank, int number)>& body) {
  threads_->run(
      [&](int number, dist::ProcessGroup*) { body(ranks_[static_cast<size_t>(number)], number); });
}

std::vector<nn::StoredParameter> Replay::Rank::tensors(int rank) {
  std::vector<nn::StoredParameter> all;
  std::unordered_set<const TensorImpl*> spread;
  if (trainer->is_sharded()) {
    for (const Tensor& each : trainer->task().model().parameters()) spread.insert(each.impl());
    for (const dist::ShardRun& each : trainer->sharded()->runs(rank)) {
      if (each.values.defined()) all.push_back({"weight " + each.parameter.name, each.values});
    }
  }
  for (nn::StoredParameter& each : trainer->task().model().stored_parameters()) {
    if (spread.contains(each.tensor.impl())) continue;
    each.name = "weight " + each.name;
    all.push_back(std::move(each));
  }
  for (nn::StoredParameter& each : trainer->optimizer().state()) {
    each.name = "optimizer state " + each.name;
    all.push_back(std::move(each));
  }
  return all;
}

Replay::State Replay::Rank::state_now(int rank) {
  const NoGradGuard no_grad;
  State state{.position = trainer->position(),
              .updates = trainer->optimizer().steps(),
              .random = random,
              .scaler = {},
              .tensors = {}};
  if (trainer->scaler().is_enabled()) state.scaler = trainer->scaler().state();
  for (const nn::StoredParameter& each : tensors(rank)) {
    state.tensors.push_back(each.tensor.detach().clone());
  }
  return state;
}

void Replay::Rank::use(const State& state, int rank) {
  const NoGradGuard no_grad;
  const std::vector<nn::StoredParameter> all = tensors(rank);
  for (size_t i = 0; i < all.size(); ++i) (void)all[i].tensor.copy_(state.tensors[i]);
  if (trainer->is_sharded()) trainer->sharded()->mark_changed();
  trainer->optimizer().set_steps(state.updates);
  if (state.scaler) trainer->scaler().load_state(*state.scaler);
  trainer->set_position(state.position);
  random = state.random;
}

void Replay::restart() {
  LS_ASSERT(!ranks_.front().begin.tensors.empty());
  on_ranks([](Rank& rank, int number) { rank.use(rank.begin, number); });
}

void Replay::restore_checkpoint(const std::filesystem::path& path) {
  const CheckpointManifest manifest = verify_checkpoint(path);
  LS_CHECK(manifest.data == data(), DataError,
           "[bisect] the data of {} is not what its checkpoint {} was trained on: expected the "
           "same. Put back the files that its config names, or start in the folder that it was "
           "started in.",
           run_.name, path.string());
  on_ranks([&](Rank& rank, int) {
    const RandomStateGuard random_state_stays;
    restore(*rank.trainer, path, manifest);
    rank.random = default_generator().state();
    const StateFiles files = rank.trainer->files_to_read();
    rank.trainer->read_state(files);
  });
}

StepResult Replay::step(const std::vector<StepWatch*>& watches) {
  StepResult result;
  on_ranks([&](Rank& rank, int number) {
    const RandomStateGuard other_stays;
    default_generator().set_state(rank.random);
    if (!watches.empty()) rank.trainer->set_watch(watches[static_cast<size_t>(number)]);
    StepResult step = rank.trainer->step();
    rank.trainer->set_watch(nullptr);
    rank.random = default_generator().state();
    if (number == 0) result = std::move(step);
  });
  return result;
}

void Replay::save() {
  on_ranks([](Rank& rank, int number) {
    rank.begin = {};
    rank.saved = rank.state_now(number);
  });
}

void Replay::go_back() {
  on_ranks([](Rank& rank, int number) { rank.use(rank.saved, number); });
}

void Replay::take_state_of(Replay& other) {
  LS_ASSERT(ranks() == 1 && other.ranks() == 1);
  ranks_.front().use(other.ranks_.front().state_now(0), 0);
}

std::string Replay::state_difference(Replay& a, Replay& b) {
  for (int number = 0; number < a.ranks(); ++number) {
    Rank& rank_a = a.ranks_[static_cast<size_t>(number)];
    Rank& rank_b = b.ranks_[static_cast<size_t>(number)];
    const std::vector<nn::StoredParameter> of_a = rank_a.tensors(number);
    const std::vector<nn::StoredParameter> of_b = rank_b.tensors(number);
    if (of_a.size() != of_b.size()) return "the number of tensors";
    for (size_t i = 0; i < of_a.size(); ++i) {
      if (of_a[i].name != of_b[i].name || !same_bits(of_a[i].tensor, of_b[i].tensor)) {
        return of_a[i].name;
      }
    }
    if (rank_a.trainer->position() != rank_b.trainer->position()) return "the position in the data";
    if (rank_a.trainer->optimizer().steps() != rank_b.trainer->optimizer().steps()) {
      return "the optimizer's number of steps";
    }
  }
  return "";
}

}  // namespace lockstep::train
