// The part of a Trainer's step that replays passes as a CUDA graph.

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "configs/run.pb.h"
#include "core/tensor/generator.h"
#include "dist/group/process_group.h"
#include "train/gradient_options.h"
#include "train/trainer.h"

namespace lockstep::train {

/// Why the passes of such a run are no graph; empty if they may be.
std::string Trainer::capture_refusal(const config::RunConfig& config, Task& task,
                                     const dist::ProcessGroup* group, const Settings& settings) {
  if (settings.device.type != DeviceType::kCUDA) {
    return "the device is " + to_string(settings.device) + ", not a GPU";
  }
  if (settings.outcome.updates_early) return "optimizer.optimizer_in_backward updates in them";
  if (settings.host_activations) return "train.offload_activations copies to the host";
  if (config.parallel().cpu_offload()) return "parallel.cpu_offload updates on the host";
  if (config.parallel().has_local_sgd()) return "ranks take steps of their own";
  if (config.parallel().communication_hook_case() != 0) return "gradients are compressed";
  if (group != nullptr && !task.model().named_buffers().empty()) {
    return "ranks exchange running statistics";
  }
  return task.why_not_repeatable();
}

std::unique_ptr<CapturedStep> Trainer::captured_step_of(const config::RunConfig& config, Task& task,
                                                        const dist::ProcessGroup* group,
                                                        const dist::ShardedModel* sharded,
                                                        const Settings& settings,
                                                        const Optimizer& optimizer) {
  if (!config.compile().cuda_graphs()) return nullptr;
  std::string of_update;
  if (!optimizer.may_be_captured()) {
    of_update = fmt::format("{} computes with numbers of the host", optimizer.kind());
  } else if (settings.updates_together) {
    of_update = "ranks meet before it";
  }
  std::vector<Tensor> weights, buffers;
  const auto add = [](std::vector<Tensor>& to, const auto& named) {
    for (const auto& each : named) to.push_back(each.tensor);
  };
  sharded ? add(weights, sharded->parameters()) : add(weights, task.model().named_parameters());
  add(buffers, task.model().named_buffers());
  return std::make_unique<CapturedStep>(settings.device, std::move(weights), std::move(buffers),
                                        capture_refusal(config, task, group, settings),
                                        std::move(of_update));
}

std::vector<std::string> Trainer::compile_reasons() const {
  std::vector<std::string> reasons;
  if (settings_.compiled) reasons = settings_.compiled->reasons();
  if (captured_ && !captured_->refusal().empty()) {
    reasons.push_back("no CUDA graph of a step's passes: " + captured_->refusal());
  } else if (captured_ && !captured_->update_refusal().empty()) {
    reasons.push_back("no CUDA graph of updates: " + captured_->update_refusal());
  }
  return reasons;
}

bool Trainer::replay_passes(StepInFlight& step) {
  // Whoever looks at operators has to see them: replays call none.
  const bool is_watched = fault_ != nullptr || watch_ != nullptr || step.audit;
  if (captured_ == nullptr || is_watched || !captured_->is_due()) return false;
  const StepShare& share = settings_.share;
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < share.micro_batches; ++i) {
    const int64_t first = share.first_sample + i * share.micro_batch_size;
    const Task::Samples samples = task_->samples(step.batch, first, share.micro_batch_size);
    if (i == 0) step.result.data_wait_ms = task_->data_wait_ms();
    captured_->put(static_cast<size_t>(i), samples.tensors);
    targets.push_back(samples.targets);
  }
  // Where the random numbers of the first pass begin: those of a replay begin where it is called.
  default_generator().set_position(static_cast<uint64_t>(step.batch),
                                   static_cast<uint32_t>(share.first_micro_batch));
  const bool captures = !captured_->has_passes();
  // In a capture each unit is to be gathered, also one whose values an evaluation has gathered; and
  // what a replay gathers is out of date once the step has ended, as without.
  if (sharded_ != nullptr) sharded_->mark_changed();
  if (captures) {
    StepInFlight pattern;
    pattern.batch = step.batch;
    const auto forward_of = [&](int64_t i) {
      return forward(step.batch, i, [&] {
        const std::vector<Tensor>& samples = captured_->samples(static_cast<size_t>(i));
        return SummedLoss{task_->sum_of_losses(samples), targets[static_cast<size_t>(i)]};
      });
    };
    captured_->capture_passes([&] {
      pass(pattern, forward_of, [] {});
      return std::move(pattern.losses);
    });
    if (!captured_->has_passes()) sync_->forget_step();
  }
  step.own_targets = std::accumulate(targets.begin(), targets.end(), int64_t{0});
  exchange_counts(step);
  if (captures && !all_captured(step)) return false;
  step.losses = captured_->replay_passes();
  step.result.replayed = true;
  return true;
}

/// A graph of one rank is of no use: others would make calls that belong to no replay.
bool Trainer::all_captured(StepInFlight& step) {
  step.targets_sum.wait();
  hear_votes(step);
  if (!captured_->has_passes()) return false;
  if (captured_->is_agreed()) return true;
  captured_->refuse("another rank could not capture the passes");
  return false;
}

void Trainer::hear_votes(const StepInFlight& step) {
  const double ranks = group_ == nullptr ? 1 : group_->size();
  captured_->hear(step.targets.data<double>()[1] == ranks);
}

bool Trainer::replay_update(StepInFlight& step, StepSums& sums) {
  const NoGradGuard no_grad;
  const std::array<double, 5> numbers = {sums.mean.value, sums.gradient_mean.value, sums.rate.value,
                                         sums.most_loss.value, sums.most_norm.value};
  captured_->send(numbers);
  if (!captured_->has_update()) {
    StepSums& there = captured_sums_ = StepSums();
    HostNumber* const read[] = {&there.mean, &there.gradient_mean, &there.rate, &there.most_loss,
                                &there.most_norm};
    for (size_t i = 0; i < numbers.size(); ++i) read[i]->place = captured_->number(i);
    captured_->capture_update([&] {
      there.norm_of_sums = norm_of_gradients();
      add_up(step, there);
      queue_update(step, there);
      there.told = told_of(there);
    });
    if (!captured_->has_update()) {
      sums.norm_of_sums = norm_of_gradients();
      return false;
    }
  }
  open_->has_changed = true;
  announce_update();
  captured_->replay_update();
  factors_ = {sums.gradient_mean.value, captured_sums_.clip};
  sums.told = captured_sums_.told;
  return true;
}

}  // namespace lockstep::train
