#include "train/trainer.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <utility>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "configs/run.pb.h"
#include "core/base/parallel.h"
#include "core/device/device_runtime.h"
#include "core/ops/factory/factory.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "dist/group/process_group.h"
#include "nn/statistics_log.h"
#include "train/arithmetic.h"
#include "train/build.h"
#include "train/grad_norm.h"
#include "train/gradient_options.h"
#include "train/non_finite_search.h"
#include "train/sync_batch_norm.h"

namespace lockstep::train {

namespace {

/// The losses of a micro-batch are summed: a scale of theirs is that of their mean, which is what a
/// GradScaler's numbers are meant for, divided by their count.
double scale_of_sum(double scale_of_mean, int64_t targets) {
  return scale_of_mean / static_cast<double>(std::bit_ceil(static_cast<uint64_t>(targets)));
}

/// So far; negative where it is not known.
int64_t bytes_sent(const dist::ProcessGroup* group) {
  const std::optional<uint64_t> bytes = group == nullptr ? std::nullopt : group->bytes_sent();
  return bytes ? static_cast<int64_t>(*bytes) : -1;
}

/// Of each rank, in a step.
std::vector<int64_t> micro_batches_of_ranks(const config::TrainConfig& train,
                                            const dist::ProcessGroup* group) {
  const int64_t size = group == nullptr ? 1 : group->size();
  std::vector<int64_t> counts;
  for (int64_t rank = 0; rank < size; ++rank) {
    counts.push_back(share_of_step(train, rank, size).micro_batches);
  }
  return counts;
}

/// Of this rank, once all are known to fit: what every rank finds wrong is found before any sends.
StepShare share_of_rank(const config::RunConfig& config, const dist::ProcessGroup* group) {
  if (group != nullptr && config.parallel().sync_batch_norm()) {
    require_equal_shares(micro_batches_of_ranks(config.train(), group));
  }
  return share_of_step(config.train(), group);
}

}  // namespace

Trainer::Trainer(const config::RunConfig& config) : Trainer(config, build_task(config)) {}

Trainer::Trainer(const config::RunConfig& config, std::unique_ptr<Task> task,
                 dist::ProcessGroup* group)
    : group_(group != nullptr && group->size() > 1 ? group : nullptr),
      batch_size_(config.train().batch_size()),
      share_(share_of_rank(config, group_)),
      clip_grad_norm_(config.optimizer().clip_grad_norm()),
      precision_(precision_of(config)),
      device_(task->model().device()),
      overfit_one_batch_(config.train().overfit_one_batch()),
      task_(std::move(task)),
      schedule_(build_schedule(config)),
      optimizer_(build_optimizer(config, task_->model().named_parameters())),
      smallest_loss_scale_(
          scale_of_sum(1, config.train().micro_batch_size() * task_->tokens_per_sample())),
      scaler_({.init_scale = GradScalerOptions().init_scale * smallest_loss_scale_,
               .enabled = precision_ == Precision::kF16Mixed}),
      reducer_(trained_parameters(task_->model()), group_, options_of_reducer(config)),
      statistics_(task_->model(), group_, micro_batches_of_ranks(config.train(), group_)) {
  if (group_ != nullptr && config.parallel().sync_batch_norm()) {
    convert_sync_batchnorm(task_->model(), *group_);
  }
  if (group_ != nullptr && config.reproducibility() == config::BITWISE) {
    require_same_arithmetic(*group_, arithmetic_facts(device_));
  }
  if (config.threads() > 0) set_num_threads(config.threads());
  if (DeviceRuntime* const runtime = device_runtime(device_.type)) {
    runtime->set_kernel_threads(num_threads());
  }
}

dist::ReducerOptions Trainer::options_of_reducer(const config::RunConfig& config) {
  dist::ReducerOptions options = reducer_options(config, share_, group_);
  if (!config.optimizer().optimizer_in_backward()) return options;
  early_update_.emplace(*optimizer_);
  options.on_reduced = [this](std::span<const uint32_t> parameters) {
    early_update_->update(parameters, reducer_.gradients());
  };
  return options;
}

SummedLoss Trainer::forward(int64_t batch, int64_t micro_batch) {
  default_generator().set_position(static_cast<uint64_t>(batch),
                                   static_cast<uint32_t>(share_.first_micro_batch + micro_batch));
  const AutocastGuard region = autocast_region(precision_, device_.type);
  const DefaultDeviceGuard on_device(device_);
  return task_->forward(batch, share_.first_sample + micro_batch * share_.micro_batch_size,
                        share_.micro_batch_size);
}

// A step that updates nothing moves no schedule either.
double Trainer::learning_rate() {
  if (!updates_) updates_ = optimizer_->steps();
  return schedule_.learning_rate(*updates_);
}

void Trainer::run_leaf(int64_t leaf, Underway& step, int64_t& targets) {
  const int64_t count = share_.micro_batches / share_.leaves;
  for (int64_t i = leaf * count; i < (leaf + 1) * count; ++i) {
    const bool is_last = i + 1 == share_.micro_batches;
    const SummedLoss loss = statistics_.observe([&] { return forward(step.batch, i); });
    if (i == 0) step.result.data_wait_ms = task_->data_wait_ms();
    targets += loss.targets;
    if (is_last) {
      // On all ranks before the first bucket of gradients.
      step.targets = full({1}, static_cast<double>(targets), {DType::kF64, kCPU});
      if (group_ != nullptr) step.targets_sum = group_->all_reduce(step.targets);
      statistics_.send();
      if (early_update_) {
        step.result.learning_rate = learning_rate();
        early_update_->begin(step.targets, step.targets_sum, step.result.learning_rate);
      }
      reducer_.expect_last_backward();
    }
    scaler_.scale(loss.sum).backward();
    const NoGradGuard no_grad;
    step.losses.select(0, share_.first_micro_batch + i).copy_(loss.sum);
  }
}

void Trainer::begin(Underway& step, bool ahead) {
  step.result.tokens = samples_per_batch() * task_->tokens_per_sample();
  step.result.step = position_.step;
  step.batch = overfit_one_batch_ ? 0 : position_.batch;
  step.random_state = default_generator().state();
  if (ahead) {
    for (const nn::NamedParameter& each : task_->model().named_buffers()) {
      step.running_statistics.push_back(each.tensor.clone());
    }
  }
  // A place for each micro-batch of the step: added in one order, whatever the number of ranks.
  step.losses = zeros({batch_size_ / share_.micro_batch_size + 1}, {DType::kF64, device_});
  int64_t targets = 0;
  reducer_.begin_step();
  for (int64_t leaf = 0; leaf < share_.leaves; ++leaf) {
    reducer_.begin_leaf();
    run_leaf(leaf, step, targets);
  }
  reducer_.finish();
  if (early_update_) early_update_->finish(reducer_.gradients());
  statistics_.apply();
}

void Trainer::begin_ahead() {
  begun_.emplace();
  try {
    begin(*begun_, true);
  } catch (...) {
    begun_->failure = std::current_exception();  // the step before has still to be told of
  }
}

void Trainer::update(Underway& step) {
  const NoGradGuard no_grad;
  const std::vector<Tensor>& gradients = reducer_.gradients();
  const Tensor scale = scaler_.is_enabled() ? scaler_.scale_on(device_) : Tensor();
  const Tensor norm_of_sums = early_update_     ? norm_of_square_sums(early_update_->square_sums())
                              : scale.defined() ? scaler_.unscale_(gradients)
                                                : grad_norm(gradients);
  const int64_t micro_batches = step.losses.numel() - 1;
  const Tensor stop = step.losses.select(0, micro_batches);
  if (stop_ && stop_()) stop.fill_(1);
  if (group_ != nullptr) group_->all_reduce(step.losses).wait();
  step.targets_sum.wait();
  // The losses were summed, so that no gradient depends on how a step was cut; the division by
  // the number of targets happens once, as the optimizer reads each gradient.
  const double mean = 1.0 / *step.targets.data<double>();
  const Tensor loss = _ordered_sum(step.losses.slice(0, 0, micro_batches)) * mean;
  const Tensor norm = norm_of_sums * mean;
  if (!early_update_) {
    step.result.learning_rate = learning_rate();
    const Tensor loss_is_finite = isfinite(loss), norm_is_finite = isfinite(norm);
    const Tensor may_update = logical_and(loss_is_finite, norm_is_finite);
    optimizer_->step(
        gradients, step.result.learning_rate, mean,
        {.grad_factor = clip_grad_norm_ > 0 ? clip_factor(norm, clip_grad_norm_) : Tensor(),
         .found_inf = logical_not(may_update).to(DType::kF32)});
    if (scale.defined()) {
      // What `read` calls finite.
      const Tensor can_back_off = gt(scale, smallest_loss_scale_);
      scaler_.update_unless(
          logical_not(logical_and(loss_is_finite, logical_or(norm_is_finite, can_back_off))));
    }
  }
  updates_.reset();
  std::vector<Tensor> told = {loss, norm, stop, optimizer_->step_count()};
  if (scale.defined()) told.push_back(scale);
  step.numbers.add(stack(told));
  ++position_.step;
  ++position_.batch;
}

void Trainer::read(Underway& step) {
  step.numbers.wait();
  const std::span<const double> told = step.numbers.values(0);
  StepResult& result = step.result;
  result.loss = told[0];
  result.grad_norm = told[1];
  result.stop = told[2] != 0;
  updates_ = static_cast<int64_t>(told[3]);
  if (scaler_.is_enabled()) result.loss_scale = told[4];
  // What overflows even so is not the scale's fault.
  const bool can_back_off = scaler_.is_enabled() && result.loss_scale > smallest_loss_scale_;
  result.overflowed =
      std::isfinite(result.loss) && !std::isfinite(result.grad_norm) && can_back_off;
  result.finite =
      std::isfinite(result.loss) && (std::isfinite(result.grad_norm) || result.overflowed);
  result.spoiled = early_update_ && !result.finite;
}

StepResult Trainer::step(bool another) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t sent_before = bytes_sent(group_);
  Underway step;
  if (begun_) {
    step = *std::exchange(begun_, {});
    if (step.failure) std::rethrow_exception(step.failure);
  } else {
    begin(step, false);
  }
  update(step);
  std::optional<dist::StepTimes> taken;
  if (another && is_asynchronous(device_.type) && !early_update_) {
    taken = reducer_.take_times();
    begin_ahead();
  }
  read(step);
  StepResult& result = step.result;
  if (sent_before >= 0) result.sent_bytes = bytes_sent(group_) - sent_before;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (group_ != nullptr) {
    // A device has come past all gradients where the losses were read.
    const dist::StepTimes& times = taken ? *taken : reducer_.times();
    result.exposed_comm_ms = times.exposed_seconds() * 1e3;
    if (result.finite) overlap_.add(overlap_of_step(times, result.seconds));
  }
  if (!result.finite) result.non_finite = find_non_finite(step);
  return result;
}

void Trainer::give_up_next() {
  if (!begun_) return;
  const NoGradGuard no_grad;
  const std::vector<nn::NamedParameter> buffers = task_->model().named_buffers();
  // Fewer where it failed before it had kept them all.
  for (size_t i = 0; i < begun_->running_statistics.size(); ++i) {
    buffers[i].tensor.copy_(begun_->running_statistics[i]);
  }
  default_generator().set_state(begun_->random_state);
  begun_.reset();
}

std::string Trainer::find_non_finite(const Underway& step) {
  if (*step.targets.data<double>() == 0) return "the batch has no targets";
  if (step.result.spoiled)
    return non_finite_sums(trained_parameters(task_->model()), reducer_.gradients());
  NonFiniteSearch search(trained_parameters(task_->model()), batch_size_ / share_.micro_batch_size);
  const RandomKey random_state = default_generator().state();
  try {
    const std::vector<Tensor> parameters = task_->model().parameters();
    const nn::StatisticsLog running_statistics_stay(task_->model());
    search.look_at_parameters();
    for (int64_t i = 0; i < share_.micro_batches && !search.found(); ++i) {
      const SummedLoss loss = forward(step.batch, i);
      // Neither `grad` nor the reducer learns of these.
      const std::vector<Tensor> gradients =
          grad({scaler_.scale(loss.sum)}, parameters, {}, {.allow_unused = true});
      search.look_at(share_.first_micro_batch + i, loss.sum.item<double>(), gradients);
    }
  } catch (const std::exception& error) {
    search.give_up(error.what());  // the other ranks wait for what this one has found
  }
  default_generator().set_state(random_state);
  return search.conclusion(group_);
}

std::optional<Evaluation> Trainer::evaluate(int64_t max_batches) {
  give_up_next();
  const AutocastGuard region = autocast_region(precision_, device_.type);
  return task_->evaluate({.max_batches = max_batches, .stop = stop_, .group = group_});
}

}  // namespace lockstep::train
