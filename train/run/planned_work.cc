#include "train/run/planned_work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/checkpoint.h"
#include "autograd/grad_mode.h"
#include "autograd/hooks.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/dispatch/op_counter.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/random_state_guard.h"
#include "nn/block_model.h"
#include "train/gradient_options.h"
#include "train/precision.h"
#include "train/run/plan.h"
#include "train/step_share.h"

namespace lockstep::train {

namespace {

/// Operations done when something happened, counted from the beginning of the micro-batch.
struct UnitCounts {
  std::optional<double> forward_begin;
  double forward_end = 0;
};

/// Watches one micro-batch of a model: which operations come before what.
class WorkCounter {
 public:
  explicit WorkCounter(const PlannedModel& planned) : model_(*planned.model) {
    if (auto* const blocks = dynamic_cast<nn::BlockModel*>(planned.model.get())) {
      for (nn::Module* each : blocks->sequence()) watch(*each);
    }
    for (const nn::NamedParameter& each : model_.named_parameters()) {
      if (!each.tensor.requires_grad()) continue;
      const TensorImpl* const key = each.tensor.impl();
      hooks_.push_back(register_post_accumulate_grad_hook(
          each.tensor, [this, key](const Tensor&) { ready_[key] = now(); }));
    }
  }

  dist::StepWork count(const PlannedModel& planned, Precision precision) {
    const ModeGuard counts(counter_);
    const std::vector<Tensor> inputs = planned.make_inputs();
    const Tensor loss = [&] {
      const AutocastGuard region = autocast_region(precision, DeviceType::kMeta);
      return planned.loss(inputs);
    }();
    const double forward_end = now();
    loss.backward();
    return work(forward_end, now());
  }

 private:
  double now() const { return static_cast<double>(counter_.total().flops); }

  void watch(nn::Module& module) {
    const size_t index = modules_.size();
    modules_.push_back(&module);
    units_.emplace_back();
    forward_hooks_.push_back(
        module.register_forward_pre_hook([this, index](const auto&, std::span<Tensor>) {
          if (is_recomputing()) return backward_begins();
          if (!units_[index].forward_begin) units_[index].forward_begin = now();
        }));
    forward_hooks_.push_back(module.register_forward_hook(
        [this, index](const auto&, std::span<const Tensor>, std::span<Tensor> outputs) {
          if (is_recomputing()) return;
          units_[index].forward_end = now();
          for (const Tensor& each : outputs) {
            if (!each.requires_grad() || each.is_leaf()) continue;
            hooks_.push_back(register_hook(each, [this](const Tensor&) {
              backward_begins();
              return Tensor();
            }));
          }
        }));
  }

  /// Backward comes to the units; at first to the last of them.
  void backward_begins() {
    if (!units_backward_) units_backward_ = now();
  }

  dist::ParameterWork parameter(const Tensor& tensor, double backward_begin) const {
    const auto ready = ready_.find(tensor.impl());
    return {.elements = tensor.numel(),
            .is_matrix = tensor.dim() >= 2,
            .ready = ready == ready_.end() ? 0 : ready->second - backward_begin};
  }

  dist::StepWork work(double forward_end, double backward_end) const {
    dist::StepWork work;
    std::map<const TensorImpl*, int> users;
    for (const nn::Module* each : modules_) {
      for (const nn::NamedParameter& own : each->named_parameters()) ++users[own.tensor.impl()];
    }
    double before = forward_end;  // operations done when the unit's forward began
    if (!units_.empty()) before = units_[0].forward_begin.value_or(0);
    if (!units_.empty()) work.forward_before = before;
    for (size_t i = 0; i < units_.size(); ++i) {
      dist::UnitWork unit{.name = modules_[i]->path(), .parameters = {}};
      for (const nn::NamedParameter& each : modules_[i]->named_parameters()) {
        if (users[each.tensor.impl()] > 1) continue;
        unit.parameters.push_back(parameter(each.tensor, forward_end));
      }
      // Modules without parameters of their own are no units; their work is the next one's.
      if (unit.parameters.empty()) continue;
      unit.forward = units_[i].forward_end - before;
      before = units_[i].forward_end;
      work.units.push_back(std::move(unit));
    }
    work.root.forward = forward_end - (units_.empty() ? 0 : before);
    for (const nn::NamedParameter& each : model_.named_parameters()) {
      if (users[each.tensor.impl()] == 1) continue;
      work.root.parameters.push_back(parameter(each.tensor, forward_end));
    }
    double done = work.units.empty() ? backward_end - forward_end
                                     : units_backward_.value_or(forward_end) - forward_end;
    work.root.backward = done;
    for (size_t i = work.units.size(); i-- > 0;) {
      double end = done;
      for (const dist::ParameterWork& each : work.units[i].parameters) {
        end = std::max(end, each.ready);
      }
      work.units[i].backward = end - done;
      done = end;
    }
    work.backward_before = backward_end - forward_end - done;
    return work;
  }

  const nn::Module& model_;
  OpCounter counter_;
  std::vector<nn::Module*> modules_;
  std::vector<UnitCounts> units_;
  std::vector<nn::ForwardHookHandle> forward_hooks_;
  std::vector<HookHandle> hooks_;
  std::map<const TensorImpl*, double> ready_;
  std::optional<double> units_backward_;
};

/// Seconds of the forward of a micro-batch that takes `micro_batch` seconds and has its first
/// gradient after `first_ready`. Backward takes the rest, in which that gradient is as far as it is
/// in the counted one.
double forward_until(double first_ready, double micro_batch, const dist::StepWork& counted) {
  const double part = counted.first_ready() / counted.backward();
  if (part >= 1) return first_ready / 2;
  return std::clamp((first_ready - part * micro_batch) / (1 - part), 0.0, micro_batch);
}

}  // namespace

dist::StepWork count_work(const config::RunConfig& config, int64_t ranks) {
  const StepShare share = share_of_step(config.train(), ranks - 1, ranks);
  const RandomStateGuard same_generator;
  const DefaultDeviceGuard on_meta(kMeta);
  const PlannedModel planned = planned_model(config, share.micro_batch_size);
  dist::StepWork work = WorkCounter(planned).count(planned, precision_of(config));
  work.micro_batches = share.micro_batches;
  return work;
}

dist::StepWork timed_work(const dist::StepWork& counted, const MeasuredWork& measured) {
  LS_CHECK(counted.forward() > 0 && counted.backward() > 0, ConfigError,
           "[plan] no operator of the model declares its floating-point operations: expected some, "
           "by which the measured time is shared out. Declare them (OpBuilder::flops).");
  const auto micro_batches = static_cast<double>(counted.micro_batches);
  const double micro_batch = (measured.step - measured.update) / micro_batches;
  const double as_counted =
      micro_batch * counted.forward() / (counted.forward() + counted.backward());
  const double first_ready = measured.first_ready - (micro_batches - 1) * micro_batch;
  const double forward =
      first_ready > 0 ? forward_until(first_ready, micro_batch, counted) : as_counted;
  dist::StepWork work = scaled_passes(counted, forward / counted.forward(),
                                      (micro_batch - forward) / counted.backward());
  work.update = measured.update;
  return work;
}

dist::ShardingWork sharding_work(const config::RunConfig& config, int64_t ranks) {
  using config::ParallelConfig;
  const ParallelConfig& parallel = config.parallel();
  dist::ShardingWork sharding{.shard_size = parallel.shard_size(),
                              .prefetch_bytes = bytes_of_mib(parallel.prefetch_mib()),
                              .gathers_casts = precision_of(config) != Precision::kF32 &&
                                               parallel.gather_dtype() == ParallelConfig::AUTOCAST,
                              .reduces_halves = parallel.bf16_reduce(),
                              .accumulates = config.reproducibility() == config::BITWISE ||
                                             !has_even_shares(config.train(), ranks)};
  switch (parallel.strategy()) {
    case ParallelConfig::SHARD_GRAD_OP:
      sharding.strategy = dist::ShardStrategy::kShardGradOp;
      break;
    case ParallelConfig::SHARD_OPTIMIZER:
      sharding.strategy = dist::ShardStrategy::kShardOptimizer;
      break;
    case ParallelConfig::HYBRID_SHARD:
      sharding.strategy = dist::ShardStrategy::kHybridShard;
      break;
    default:
      break;
  }
  return sharding;
}

}  // namespace lockstep::train
