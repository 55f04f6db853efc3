// One step of a Trainer: forward and backward, the update, and the next step begun ahead.

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/device_worker.h"
#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/spans/span.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "dist/group/process_group.h"
#include "train/gradient_options.h"
#include "train/optimizer/grad_norm.h"
#include "train/trainer.h"
#include "train/watch/bit_flipper.h"

namespace lockstep::train {

namespace {

/// Seconds, and bytes that this rank sent to others, since it was made.
class StepMeter {
 public:
  /// `sent_before`: what had been sent when the step began, if it began ahead of this.
  StepMeter(const dist::ProcessGroup* group, std::optional<int64_t> sent_before)
      : group_(group),
        start_(std::chrono::steady_clock::now()),
        sent_before_(sent_before ? *sent_before : bytes_sent()) {}

  void write_to(StepResult& result) const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    result.seconds = passed.count();
    if (sent_before_ >= 0) result.sent_bytes = bytes_sent() - sent_before_;
  }
  /// Negative where it is not known.
  int64_t bytes_sent() const {
    const std::optional<uint64_t> bytes = group_ == nullptr ? std::nullopt : group_->bytes_sent();
    return bytes ? static_cast<int64_t>(*bytes) : -1;
  }

 private:
  const dist::ProcessGroup* group_;
  std::chrono::steady_clock::time_point start_;
  int64_t sent_before_;
};

}  // namespace

/// Results pass the fault first, so that the caller's watch sees it. Modes belong to one thread:
/// meanwhile this one also runs what a device's own would run of backward.
class Trainer::Watching {
 public:
  explicit Watching(const Trainer& trainer) {
    if (trainer.fault_ == nullptr && trainer.watch_ == nullptr) return;
    const Device device = trainer.settings_.device;
    if (is_asynchronous(device.type)) worker_.emplace(&DeviceWorker::of(device));
    if (trainer.fault_) fault_.emplace(static_cast<DispatchMode&>(*trainer.fault_));
    if (trainer.watch_ != nullptr) watch_.emplace(static_cast<DispatchMode&>(*trainer.watch_));
  }

 private:
  std::optional<DeviceWorker::StandIn> worker_;
  std::optional<ModeGuard> fault_;
  std::optional<ModeGuard> watch_;
};

StepResult Trainer::step(bool another) {
  scatter_weights();
  collected_.reset();
  // A step that was begun ahead sends from then on, once the one before it has sent all of its own.
  const StepMeter meter(group_, begun_ ? std::optional(sent_by_last_step_) : std::nullopt);
  StepInFlight step = forward_and_backward();
  if (step.audit) step.result.audit = audit(step);
  const bool again = !step.result.audit.empty();
  if (settings_.updates_together) meter.write_to(step.result);  // as far as it may come
  const StepSums sums = sum_and_update(step);
  close(step, sums);
  if (again) {
    undo(step);
    position_ = {position_.step - 1, position_.batch - 1};
    fault_.reset();  // a planted fault is a passing one
  }

  // Of this step, where the next one's take their place, or that has none because it was replayed.
  std::optional<dist::StepTimes> kept;
  const bool has_times = group_ != nullptr && !step.result.replayed;
  if (another && !again && can_begin_ahead()) {
    if (has_times) kept = sync_->take_times();
    begin_ahead();
  }
  // A step that is begun ahead counts its waiting anew.
  const std::vector<dist::GatherWait> gather_waits =
      sharded_ == nullptr ? std::vector<dist::GatherWait>() : sharded_->gather_waits();
  read(step);
  StepResult& result = step.result;
  meter.write_to(result);
  sent_by_last_step_ = meter.bytes_sent();
  if (has_times) {
    // A device has come past all gradients where the losses were read.
    const dist::StepTimes& times = kept ? *kept : sync_->times();
    StepOverlap overlap = overlap_of_step(times, result.seconds, gather_waits);
    const double averages = local_ ? local_->take_wait() : 0;
    result.exposed_comm_ms = (overlap.exposed + overlap.gathers() + averages) * 1e3;
    if (result.outcome.finite) overlap_.add(std::move(overlap));
  }
  if (!result.outcome.finite && !again) result.non_finite = find_non_finite(step);
  if (!result.spike.empty()) {
    const std::string samples = samples_of_spike(step.batch);
    if (!samples.empty()) result.spike += "; " + samples;
  }
  return result;
}

// --- forward and backward ------------------------------------------------------------------------

StepInFlight Trainer::forward_and_backward() {
  StepInFlight step;
  if (!begun_) {
    forward_and_backward(step, /*ahead=*/false);
    return step;
  }
  step = *std::exchange(begun_, {});
  if (step.failure) std::rethrow_exception(step.failure);
  return step;
}

void Trainer::forward_and_backward(StepInFlight& step, bool ahead) {
  if (early_update_) announce_update();
  open_ = OpenStep{.random_state = default_generator().state(), .has_changed = changes_early()};
  step.result.tokens = samples_per_batch() * task_->tokens_per_sample();
  step.result.step = position_.step;
  step.batch = settings_.overfit_one_batch ? 0 : position_.batch;
  step.random_state = open_->random_state;
  step.audit = due_audit();
  if (ahead || step.audit) {
    for (const nn::NamedParameter& each : task_->model().named_buffers()) {
      step.running_statistics.push_back(each.tensor.clone());
    }
  }
  const Watching watching(*this);
  if (!replay_passes(step)) run_passes(step);
  if (has_statistics()) open_->has_changed = true;
  statistics_.apply();
}

void Trainer::run_passes(StepInFlight& step) {
  pass(
      step, [&](int64_t i) { return forward(step.batch, i); },
      [&] {
        if (!step.targets.defined()) exchange_counts(step);
      });
  if (captured_) {
    captured_->ran((reducer_ == nullptr || reducer_->is_settled()) &&
                   (settings_.compiled == nullptr || settings_.compiled->is_settled()));
  }
}

void Trainer::pass(StepInFlight& step, FunctionRef<SummedLoss(int64_t)> forward_of,
                   FunctionRef<void()> after_forwards) {
  const StepShare& share = settings_.share;
  // A place for each micro-batch of the step: added in one order, whatever the number of ranks.
  step.losses =
      zeros({settings_.batch_size / share.micro_batch_size + 1}, {DType::kF64, settings_.device});
  step.own_targets = 0;
  sync_->begin_step();
  for (int64_t i = 0; i < share.micro_batches; ++i) {
    begin_part(share.first_micro_batch + i, position_.step);
    if (share.begins_leaf(i)) sync_->begin_leaf();
    const SummedLoss loss = statistics_.observe([&] {
      const Range range("forward");
      return forward_of(i);
    });
    if (i == 0) step.result.data_wait_ms = task_->data_wait_ms();
    step.own_targets += loss.targets;
    if (share.ends_step(i)) {
      after_forwards();
      sync_->expect_last_backward();
    }
    backward(loss, i, step);
    keep(loss, i, step);
  }
  begin_part(std::nullopt, position_.step);  // goes on in `sum_and_update`
  for (int64_t i = 0; sharded_ != nullptr && i < settings_.idle_passes; ++i) {
    sharded_->pass_without_samples();
  }
  sync_->finish();
  if (early_update_) early_update_->finish(gradients());
}

void Trainer::backward(const SummedLoss& loss, int64_t micro_batch, StepInFlight& step) {
  const Range range("backward");
  const bool audited = step.audit && step.audit->audited == group_->rank() &&
                       step.audit->micro_batch == settings_.share.first_micro_batch + micro_batch;
  if (audited) {
    step.audited_gradients = std::make_unique<GradientHashes>(trained_parameters(task_->model()));
    step.audited_loss = loss.sum.detach();
  }
  scaler_.scale(loss.sum).backward();  // buckets leave while the last one runs
  if (audited) step.audited_gradients->stop();
}

SummedLoss Trainer::forward(int64_t batch, int64_t micro_batch, FunctionRef<SummedLoss()> model) {
  const int64_t number = settings_.share.first_micro_batch + micro_batch;
  default_generator().set_position(static_cast<uint64_t>(batch), static_cast<uint32_t>(number));
  const AutocastGuard region = autocast_region(settings_.precision, settings_.device.type);
  const DefaultDeviceGuard on_device(settings_.device);
  const std::optional<SavedTensorHooksGuard> guard = guard_of(settings_.host_activations);
  return model();
}

SummedLoss Trainer::forward(int64_t batch, int64_t micro_batch) {
  const StepShare& share = settings_.share;
  return forward(batch, micro_batch, [&] {
    const int64_t first = share.first_sample + micro_batch * share.micro_batch_size;
    return task_->forward(batch, first, share.micro_batch_size);
  });
}

void Trainer::keep(const SummedLoss& loss, int64_t micro_batch, StepInFlight& step) {
  const NoGradGuard no_grad;
  step.losses.select(0, settings_.share.first_micro_batch + micro_batch).copy_(loss.sum);
}

void Trainer::exchange_counts(StepInFlight& step) {
  const int64_t counts = captured_ ? 2 : 1;
  step.targets = full({counts}, static_cast<double>(step.own_targets), {DType::kF64, kCPU});
  if (captured_) step.targets.data<double>()[1] = captured_->vote() ? 1 : 0;
  if (group_ != nullptr) step.targets_sum = group_->all_reduce(step.targets);
  statistics_.send();
  if (early_update_) {
    step.result.learning_rate = learning_rate();
    early_update_->begin(step.targets, step.targets_sum, step.result.learning_rate);
  }
}

// --- the update ----------------------------------------------------------------------------------

void Trainer::begin_part(std::optional<int64_t> micro_batch, int64_t step) {
  const StepPart part{.step = step, .micro_batch = micro_batch};
  if (fault_) fault_->begin(part);
  if (watch_ != nullptr) watch_->begin(part);
}

StepSums Trainer::sum_and_update(StepInFlight& step) {
  const Watching watching(*this);
  StepSums sums;
  const bool replays = step.result.replayed && captured_->may_have_update();
  // Before a rank has the others' losses, so that none ends a step in which another is lost here.
  if (!replays) sums.norm_of_sums = norm_of_gradients();
  sum_losses(step);
  take_numbers(step, sums);
  if (!replays || !replay_update(step, sums)) {
    add_up(step, sums);
    if (settings_.updates_together && step.result.audit.empty()) wait_for_all(step, sums);
    if (!early_update_) update(step, sums);
  }
  if (local_) average_steps();
  if (fault_) fault_->end_step();
  if (watch_ != nullptr) watch_->end_step();
  return sums;
}

void Trainer::sum_losses(const StepInFlight& step) {
  const NoGradGuard no_grad;
  const Range range("sum of losses");
  if (stop_ && stop_()) step.losses.select(0, step.losses.numel() - 1).fill_(1);
  if (group_ != nullptr) group_->all_reduce(step.losses).wait();
  step.targets_sum.wait();
  if (captured_) hear_votes(step);
}

void Trainer::take_numbers(StepInFlight& step, StepSums& sums) {
  sums.mean.value = sums.gradient_mean.value = 1.0 / *step.targets.data<double>();
  if (local_) sums.gradient_mean.value = 1.0 / static_cast<double>(step.own_targets);
  if (early_update_) return;  // it has the rate
  sums.rate.value = step.result.learning_rate = learning_rate();
  // The limits come from steps whose numbers have been read, also where this one began ahead.
  const SpikeLimits most = spikes_.limits();
  sums.most_loss.value = most.loss;
  sums.most_norm.value = most.grad_norm;
}

Tensor Trainer::norm_of_gradients() {
  const NoGradGuard no_grad;
  const Range range("norm");
  const Tensor norm = norm_of_square_sums(sync_->blocks_of_all(
      early_update_ && !gradients().empty() ? early_update_->square_sums()
                                            : block_square_sums(gradients(), settings_.device)));
  return scaler_.is_enabled() ? scaler_.unscale_(gradients(), norm) : norm;
}

void Trainer::add_up(const StepInFlight& step, StepSums& sums) {
  const NoGradGuard no_grad;
  const Range range("loss");
  if (scaler_.is_enabled()) sums.loss_scale = scaler_.scale_on(settings_.device).clone();
  const int64_t micro_batches = step.losses.numel() - 1;
  sums.stop = step.losses.select(0, micro_batches);
  // The losses were summed, so that no gradient depends on how a step was cut; the division by
  // the number of targets happens once, as the optimizer reads each gradient.
  sums.loss = _ordered_sum(step.losses.slice(0, 0, micro_batches)) * sums.mean;
  sums.norm_of_all = sums.norm = sums.norm_of_sums * sums.gradient_mean;
  if (local_) {
    sums.norm_of_all = square(sums.norm);
    group_->all_reduce(sums.norm_of_all, dist::sum_of_ranks(group_->size(), true)).wait();
    sums.norm_of_all = sqrt(sums.norm_of_all);
  }
  if (const double limit = settings_.clip_grad_norm; limit > 0) {
    sums.clip = clip_factor(sums.norm, limit).to(optimizer_->step_count().device());
  }
}

void Trainer::wait_for_all(StepInFlight& step, const StepSums& sums) {
  try {
    group_->barrier().wait();
  } catch (...) {
    ready_ = ReadyStep{std::move(step), sums};
    throw;
  }
}

StepResult Trainer::finish_step() {
  LS_ASSERT(ready_ && open_);
  ReadyStep ready = *std::exchange(ready_, {});
  {
    const Watching watching(*this);
    update(ready.step, ready.sums);
    if (fault_) fault_->end_step();
    if (watch_ != nullptr) watch_->end_step();
  }
  close(ready.step, ready.sums);
  read(ready.step);
  StepResult& result = ready.step.result;
  if (!result.outcome.finite) {
    result.non_finite =
        "where that began is not known, as a rank was lost before it was looked for";
  }
  return std::move(result);
}

/// Without what the ranks left out alike: the number of the step decides what is averaged when.
void Trainer::average_steps() {
  const int64_t steps = position_.step + 1;
  local_->after_update(steps);
  if (steps == settings_.steps) local_->finish(steps);
}

void Trainer::announce_update() {
  if (const std::function<void()> before = std::exchange(before_update_, {})) before();
}

void Trainer::update(StepInFlight& step, const StepSums& sums) {
  const NoGradGuard no_grad;
  const Range range("optimizer");
  open_->has_changed = true;
  announce_update();
  factors_ = {sums.gradient_mean.value, sums.clip};
  queue_update(step, sums);
}

void Trainer::queue_update(const StepInFlight& step, const StepSums& sums) {
  const Tensor loss_is_finite = isfinite(sums.loss), norm_is_finite = isfinite(sums.norm_of_all);
  Tensor may_update = logical_and(loss_is_finite, norm_is_finite);
  if (settings_.spikes.leaves_out()) {
    may_update = logical_and(may_update, logical_and(is_at_most(sums.loss, sums.most_loss),
                                                     is_at_most(sums.norm_of_all, sums.most_norm)));
  }
  if (!step.result.audit.empty()) may_update = zeros_like(may_update);
  const Device there = optimizer_->step_count().device();  // the cpu with parallel.cpu_offload
  const Tensor found_inf = to(logical_not(may_update), DType::kF32, there);
  if (const Tensor& mean = sums.gradient_mean.place; mean.defined()) {  // in a graph
    optimizer_->step(gradients(), 1, 1,
                     {.grad_factor = sums.clip.defined() ? sums.clip * mean : mean,
                      .found_inf = found_inf,
                      .rate_factor = sums.rate.place});
  } else {
    optimizer_->step(gradients(), sums.rate.value, sums.gradient_mean.value,
                     {.grad_factor = sums.clip, .found_inf = found_inf});
  }
  if (!scaler_.is_enabled() || !step.result.audit.empty()) return;
  // Follows the scale where `outcome_of` will call the step finite.
  const Tensor can_back_off = gt(sums.loss_scale, settings_.outcome.smallest_loss_scale);
  scaler_.update_unless(
      logical_not(logical_and(loss_is_finite, logical_or(norm_is_finite, can_back_off))));
}

Tensor Trainer::told_of(const StepSums& sums) const {
  std::vector<Tensor> told = {sums.loss, sums.norm_of_all, sums.stop,
                              optimizer_->step_count().to(settings_.device)};
  if (scaler_.is_enabled()) told.push_back(sums.loss_scale);
  return stack(told);
}

void Trainer::close(StepInFlight& step, const StepSums& sums) {
  const NoGradGuard no_grad;
  step.numbers.add(sums.told.defined() ? sums.told : told_of(sums));
  updates_.reset();
  ++position_.step;
  ++position_.batch;
  open_.reset();
}

void Trainer::read(StepInFlight& step) {
  step.numbers.wait();
  const std::span<const double> told = step.numbers.values(0);
  StepResult& result = step.result;
  result.loss = told[0];
  result.grad_norm = told[1];
  result.stop = told[2] != 0;
  updates_ = static_cast<int64_t>(told[3]);
  if (scaler_.is_enabled()) result.loss_scale = told[4];
  result.outcome =
      outcome_of({result.loss, result.grad_norm, result.loss_scale}, settings_.outcome);
  result.outcome.left_out = !result.audit.empty();
  look_for_spike(result);
}

// A step that updates nothing moves no schedule either.
double Trainer::learning_rate() {
  if (!updates_) updates_ = optimizer_->steps();
  return settings_.schedule.learning_rate(*updates_);
}

// --- the next step, begun ahead ------------------------------------------------------------------

bool Trainer::can_begin_ahead() const {
  return is_asynchronous(settings_.device.type) && !early_update_;
}

void Trainer::begin_ahead() {
  begun_ = StepInFlight{};
  try {
    forward_and_backward(*begun_, /*ahead=*/true);
  } catch (...) {
    begun_->failure = std::current_exception();  // the step before has still to be told of
  }
}

void Trainer::give_up_next() {
  if (!begun_) return;
  undo(*begun_);
  begun_.reset();
  open_.reset();
}

void Trainer::undo(const StepInFlight& step) {
  const NoGradGuard no_grad;
  const std::vector<nn::NamedParameter> buffers = task_->model().named_buffers();
  // Fewer where it failed before it had kept them all.
  for (size_t i = 0; i < step.running_statistics.size(); ++i) {
    buffers[i].tensor.copy_(step.running_statistics[i]);
  }
  default_generator().set_state(step.random_state);
}

}  // namespace lockstep::train
