#include "train/trainer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "configs/bit_flip.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/device/device_runtime.h"
#include "dist/group/process_group.h"
#include "train/arithmetic.h"
#include "train/build.h"
#include "train/gradient_options.h"
#include "train/sync_batch_norm.h"
#include "train/watch/bit_flipper.h"

namespace lockstep::train {

namespace {

/// The losses of a micro-batch are summed: a scale of theirs is that of their mean, which is what a
/// GradScaler's numbers are meant for, divided by their count. This is the one of a mean's 1.
double smallest_loss_scale(const config::RunConfig& config, const Task& task) {
  const int64_t targets = config.train().micro_batch_size() * task.tokens_per_sample();
  return 1 / static_cast<double>(std::bit_ceil(static_cast<uint64_t>(targets)));
}

/// The shares of all ranks; throws on every rank before any of them communicates.
std::vector<StepShare> shares_of_ranks(const config::RunConfig& config,
                                       const dist::ProcessGroup* group) {
  const int64_t size = group == nullptr ? 1 : group->size();
  std::vector<StepShare> shares;
  for (int64_t rank = 0; rank < size; ++rank) {
    shares.push_back(share_of_step(config.train(), rank, size));
  }
  return shares;
}

std::vector<int64_t> micro_batches_of(std::span<const StepShare> shares) {
  std::vector<int64_t> counts;
  for (const StepShare& each : shares) counts.push_back(each.micro_batches);
  return counts;
}

/// Lets casts of weights live until the weights change, so that the optimizer writes them. Of a
/// model whose weights come and go, casts do too.
void keep_casts(const config::RunConfig& config, const nn::Module& model, bool sharded) {
  if (precision_of(config) == Precision::kF32) return;
  if (sharded && config.parallel().strategy() != config::ParallelConfig::SHARD_OPTIMIZER) return;
  for (const nn::NamedParameter& each : model.named_parameters()) keep_cast(each.tensor);
}

void use_threads(const config::RunConfig& config, Device device) {
  if (config.threads() > 0) set_num_threads(config.threads());
  if (DeviceRuntime* const runtime = device_runtime(device.type)) {
    runtime->set_kernel_threads(num_threads());
  }
}

std::unique_ptr<StepWatch> fault_of(const config::RunConfig& config) {
  std::optional<config::BitFlip> flip = config::flip_of(config);
  return flip ? std::make_unique<BitFlipper>(*std::move(flip)) : nullptr;
}

}  // namespace

Trainer Trainer::create(const config::RunConfig& config) {
  return create(config, build_task(config));
}

Trainer Trainer::create(const config::RunConfig& config, std::unique_ptr<Task> task,
                        dist::ProcessGroup* group) {
  std::unique_ptr<Optimizer> optimizer;
  return create(config, task, optimizer, group, /*fills=*/true);
}

Trainer Trainer::create(const config::RunConfig& config, Legacy& legacy,
                        dist::ProcessGroup* group) {
  config::RunConfig same_passes = config;
  same_passes.mutable_train()->set_micro_batch_size(legacy.micro_batch_size);
  Trainer trainer = create(same_passes, legacy.task, legacy.optimizer, group, /*fills=*/false);
  if (trainer.is_sharded()) trainer.take_parts(legacy);
  trainer.scaler_.load_state(legacy.scale);
  trainer.spikes_.remember(legacy.spikes);
  trainer.set_position(legacy.position);
  if (legacy.early_end) trainer.end_early(*legacy.early_end);
  const StepShare& share = trainer.settings_.share;
  trainer.task_->train_on(share.first_sample, share.end_sample());
  return trainer;
}

Trainer::Legacy Trainer::leave() {
  give_up_next();
  if (ready_) default_generator().set_state(open_->random_state);
  Legacy legacy;
  if (sharded_ != nullptr) {
    legacy.part = part();
    legacy.parts = own_parts();
    legacy.updates = optimizer_->steps();
    optimizer_.reset();  // the next model has other tensors
    sharded_->abandon_values();
  }
  captured_.reset();
  // It watches the parameters, and its operations have ended.
  sync_.reset();
  early_update_.reset();
  legacy.task = std::move(task_);
  legacy.optimizer = std::move(optimizer_);
  legacy.scale = scaler_.state();
  legacy.spikes = spikes_.memory();
  legacy.position = position_;
  legacy.micro_batch_size = settings_.share.micro_batch_size;
  legacy.early_end = early_end_;
  return legacy;
}

Trainer Trainer::create(const config::RunConfig& config, std::unique_ptr<Task>& task,
                        std::unique_ptr<Optimizer>& optimizer, dist::ProcessGroup* group,
                        bool fills) {
  if (group != nullptr && group->size() == 1) group = nullptr;
  nn::Module& model = task->model();
  Settings settings = settings_of(config, group, *task);
  auto sharded = make_sharded_model(config, settings.share, model, group, fills);
  auto fresh =
      optimizer ? nullptr : build_optimizer(config, updated_parameters(model, sharded.get()));
  Optimizer& updates = optimizer ? *optimizer : *fresh;
  share_updates(config, updates, sharded.get(), group);
  keep_casts(config, model, sharded != nullptr);
  GradScaler scaler(
      {.init_scale = GradScalerOptions().init_scale * smallest_loss_scale(config, *task),
       .enabled = settings.precision == Precision::kF16Mixed});
  auto early_update =
      config.optimizer().optimizer_in_backward() ? std::make_unique<EarlyUpdate>(updates) : nullptr;
  if (sharded && early_update) {
    sharded->on_reduced([update = early_update.get()](std::span<const uint32_t> parts,
                                                      const std::vector<Tensor>& gradients) {
      update->update(parts, gradients);
    });
  }
  auto local = make_local_sgd(config, model, group);
  auto reducer = sharded ? nullptr
                         : make_reducer(config, settings.share, model, local ? nullptr : group,
                                        early_update.get());
  RankStatistics statistics(model, group, micro_batches_of(shares_of_ranks(config, group)));
  if (group != nullptr && config.parallel().sync_batch_norm())
    convert_sync_batchnorm(model, *group);
  if (group != nullptr &&
      (config.reproducibility() == config::BITWISE || config.audit().every_steps() > 0)) {
    require_same_arithmetic(*group, arithmetic_facts(settings.device));
  }
  use_threads(config, settings.device);
  auto captured = captured_step_of(config, *task, group, sharded.get(), settings, updates);
  return Trainer(group, std::move(settings), std::move(task),
                 fresh ? std::move(fresh) : std::move(optimizer), std::move(scaler),
                 std::move(early_update), std::move(reducer), std::move(sharded), std::move(local),
                 std::move(statistics), fault_of(config), std::move(captured));
}

Trainer::Settings Trainer::settings_of(const config::RunConfig& config,
                                       const dist::ProcessGroup* group, Task& task) {
  Settings settings;
  settings.batch_size = config.train().batch_size();
  settings.steps = config.train().steps();
  const std::vector<StepShare> shares = shares_of_ranks(config, group);
  if (group != nullptr && config.parallel().sync_batch_norm()) {
    require_equal_shares(micro_batches_of(shares));
  }
  settings.take_shares(shares, group == nullptr ? 0 : group->rank());
  if (group != nullptr && config.reproducibility() == config::BITWISE &&
      group->size() <= config.train().leaves()) {
    settings.deal = dist::LeafDeal::even(config.train().leaves(), group->size());
    LS_CHECK(config.parallel().balance() != config::ParallelConfig::SPEED ||
                 settings.deal.leaves() > settings.deal.ranks(),
             ConfigError,
             "[train] parallel.balance: SPEED moves leaves between ranks: expected more leaves "
             "(train.leaves) than the {} ranks, got {}. Set train.leaves higher, or choose EVEN.",
             settings.deal.ranks(), settings.deal.leaves());
  }
  if (config.reproducibility() == config::BITWISE) settings.exact_rows.emplace();
  settings.device = task.model().device();
  settings.precision = precision_of(config);
  settings.overfit_one_batch = config.train().overfit_one_batch();
  settings.clip_grad_norm = config.optimizer().clip_grad_norm();
  settings.schedule = build_schedule(config);
  settings.host_activations = offloaded_activations(config, task.model(), settings.device);
  settings.spikes = spike_rule_of(config);
  settings.evaluates_averages = config.train().weight_average().evaluate();
  settings.compiled = compile_blocks(config, task.model());
  settings.audit_every = group == nullptr ? 0 : config.audit().every_steps();
  settings.outcome.updates_early = config.optimizer().optimizer_in_backward();
  settings.updates_together = config.parallel().has_elastic() && train::is_sharded(config, group) &&
                              !settings.outcome.updates_early;
  if (settings.precision == Precision::kF16Mixed) {
    settings.outcome.smallest_loss_scale = smallest_loss_scale(config, task);
  }
  return settings;
}

void Trainer::Settings::take_shares(std::span<const StepShare> shares, int rank) {
  share = shares[static_cast<size_t>(rank)];
  idle_passes = std::ranges::max(micro_batches_of(shares)) - share.micro_batches;
  micro_batches_of_ranks.clear();
  for (const StepShare& each : shares) {
    micro_batches_of_ranks.push_back({each.first_micro_batch, each.micro_batches});
  }
}

Trainer::Trainer(dist::ProcessGroup* group, Settings settings, std::unique_ptr<Task> task,
                 std::unique_ptr<Optimizer> optimizer, GradScaler scaler,
                 std::unique_ptr<EarlyUpdate> early_update, std::unique_ptr<dist::Reducer> reducer,
                 std::unique_ptr<dist::ShardedModel> sharded, std::unique_ptr<dist::LocalSgd> local,
                 RankStatistics statistics, std::unique_ptr<StepWatch> fault,
                 std::unique_ptr<CapturedStep> captured)
    : group_(group),
      settings_(std::move(settings)),
      task_(std::move(task)),
      optimizer_(std::move(optimizer)),
      scaler_(std::move(scaler)),
      spikes_(settings_.spikes),
      early_update_(std::move(early_update)),
      reducer_(reducer.get()),
      sharded_(sharded.get()),
      local_(std::move(local)),
      captured_(std::move(captured)),
      statistics_(std::move(statistics)),
      fault_(std::move(fault)) {
  if (sharded) {
    sync_ = std::move(sharded);
  } else {
    sync_ = std::move(reducer);
  }
}

void Trainer::deal_out(const dist::LeafDeal& deal) {
  give_up_next();
  if (captured_) captured_->drop();
  sync_->deal_out(deal);
  settings_.deal = deal;
  const int64_t size = settings_.share.micro_batch_size;
  std::vector<StepShare> shares;
  for (int rank = 0; rank < deal.ranks(); ++rank) {
    shares.push_back(share_of_deal(deal, rank, settings_.batch_size / size, size));
  }
  settings_.take_shares(shares, group_ == nullptr ? 0 : group_->rank());
  statistics_.set_micro_batches(micro_batches_of(shares));
  task_->train_on(settings_.share.first_sample, settings_.share.end_sample());
}

}  // namespace lockstep::train
