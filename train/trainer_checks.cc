// The part of Trainer that looks for what is wrong with a step: numbers that are not finite,
// spikes, ranks that compute differently.

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "core/tensor/random_state_guard.h"
#include "dist/group/agreement.h"
#include "nn/statistics_log.h"
#include "train/evaluating.h"
#include "train/gradient_options.h"
#include "train/non_finite_search.h"
#include "train/spike_samples.h"
#include "train/trainer.h"

namespace lockstep::train {

void Trainer::look_for_spike(StepResult& result) {
  if (!result.outcome.updated()) return;
  const SpikeLimits most = spikes_.limits();
  if (result.loss > most.loss || result.grad_norm > most.grad_norm) {
    result.spike = spikes_.describe(result.loss, result.grad_norm);
    result.outcome.left_out = settings_.spikes.leaves_out();
  }
  result.outcome.spike = spikes_.add(result.step, result.loss, result.grad_norm);
}

std::string Trainer::samples_of_spike(int64_t batch) {
  const NoGradGuard no_grad;
  const AutocastGuard region = autocast_region(settings_.precision, settings_.device.type);
  const DefaultDeviceGuard on_device(settings_.device);
  const StepShare& share = settings_.share;
  const Tensor losses = zeros({settings_.batch_size}, {DType::kF64, settings_.device});
  if (sharded_ != nullptr) sharded_->summon_full_parameters();
  bool can_tell = true;
  {
    const Evaluating evaluating(task_->model());  // no dropout, and running statistics stay
    for (int64_t i = 0; i < share.micro_batches && can_tell; ++i) {
      const int64_t first = share.first_sample + i * share.micro_batch_size;
      const Tensor own = task_->losses(batch, first, share.micro_batch_size);
      can_tell = own.defined();
      if (can_tell) losses.narrow(0, first, share.micro_batch_size).copy_(own);
    }
  }
  if (sharded_ != nullptr) sharded_->release_full_parameters();
  if (!can_tell) return {};
  if (group_ != nullptr) group_->all_reduce(losses).wait();
  const Tensor here = losses.to(kCPU);
  return describe_largest({here.data<double>(), static_cast<size_t>(here.numel())},
                          task_->origins(batch, settings_.batch_size));
}

std::string Trainer::find_non_finite_sums() {
  const std::vector<dist::NamedTensor> names =
      sharded_ != nullptr ? sharded_->parameters() : trained_parameters(task_->model());
  std::vector<std::string> found = {non_finite_sums(names, gradients())};
  // Each rank of a sharded model has parts of the sums, of which some may be finite.
  if (sharded_ != nullptr) found = dist::all_gather_texts(*group_, found.front());
  for (const std::string& each : found) {
    if (!each.empty()) return each;
  }
  return "the losses are, of gradients that are finite";
}

std::string Trainer::find_non_finite(const StepInFlight& step) {
  if (*step.targets.data<double>() == 0) return "the batch has no targets";
  if (step.result.outcome.spoiled) return find_non_finite_sums();
  NonFiniteSearch search(trained_parameters(task_->model()),
                         settings_.batch_size / settings_.share.micro_batch_size);
  const RandomStateGuard random_state_stays;
  // Each rank stops at what it finds, so that its forwards cannot gather.
  if (sharded_ != nullptr) sharded_->summon_full_parameters();
  try {
    std::vector<Tensor> parameters;
    for (const dist::NamedTensor& each : trained_parameters(task_->model())) {
      parameters.push_back(each.tensor);
    }
    const nn::StatisticsLog running_statistics_stay(task_->model());
    search.look_at_parameters();
    for (int64_t i = 0; i < settings_.share.micro_batches && !search.found(); ++i) {
      const SummedLoss loss = forward(step.batch, i);
      // Neither `grad` nor the reducer learns of these.
      const std::vector<Tensor> gradients =
          grad({scaler_.scale(loss.sum)}, parameters, {}, {.allow_unused = true});
      search.look_at(settings_.share.first_micro_batch + i, loss.sum.item<double>(), gradients);
    }
  } catch (const std::exception& error) {
    search.give_up(error.what());  // the other ranks wait for what this one has found
  }
  if (sharded_ != nullptr) sharded_->release_full_parameters();
  return search.conclusion(group_);
}

std::optional<Audit> Trainer::due_audit() const {
  const int64_t number = position_.step + 1, every = settings_.audit_every;
  if (every == 0 || number % every != 0) return std::nullopt;
  return audit_of(number / every - 1, settings_.micro_batches_of_ranks);
}

std::string Trainer::audit(const StepInFlight& step) {
  const RandomStateGuard random_state_stays;
  const std::vector<dist::NamedTensor> parameters = trained_parameters(task_->model());
  std::vector<Tensor> tensors;
  for (const dist::NamedTensor& each : parameters) tensors.push_back(each.tensor);
  if (sharded_ == nullptr) require_equal_values(*group_, parameters);
  if (sharded_ != nullptr) sharded_->summon_full_parameters();
  const auto again = [&] {
    const nn::StatisticsLog running_statistics_stay(task_->model());
    const SummedLoss loss =
        forward(step.batch, step.audit->micro_batch - settings_.share.first_micro_batch);
    AuditHashes hashes = {audit_hash(loss.sum)};
    // Neither `grad` nor the reducer learns of these.
    for (const Tensor& gradient :
         grad({scaler_.scale(loss.sum)}, tensors, {}, {.allow_unused = true})) {
      hashes.push_back(audit_hash(gradient));
    }
    return hashes;
  };
  const AuditHashes own =
      step.audited_gradients ? step.audited_gradients->with_loss(step.audited_loss) : AuditHashes();
  std::string found = compare_audit(*group_, *step.audit, parameters, own, again);
  if (sharded_ != nullptr) {
    sharded_->release_full_parameters();
    sharded_->mark_changed();  // by the update that follows
  }
  return found;
}

}  // namespace lockstep::train
