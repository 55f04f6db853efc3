#pragma once

#include "optim/scheduler.h"

namespace lockstep::optim {

/// Schedules one after the other: in each of the milestones the next one begins, at its step 0 and
/// with the initial learning rates.
///
///   optim::LinearLR warmup(optimizer, {.start_factor = 0.01, .total_iters = 100});
///   optim::CosineAnnealingLR decay(optimizer, {.t_max = 900});
///   optim::SequentialLR schedule(optimizer, {&warmup, &decay}, {100});
///
/// The schedulers must outlive it. Its state contains theirs.
class SequentialLR final : public Scheduler {
 public:
  /// Resets the rates of the groups, and takes step 0. Throws ConfigError unless all schedulers
  /// belong to `optimizer`, and there is one milestone fewer than schedulers, each at least 0 and
  /// none below the one before.
  SequentialLR(Optimizer& optimizer, std::vector<Scheduler*> schedulers,
               std::vector<int64_t> milestones);

  void step() override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 private:
  void begin() override;
  double next_rate(size_t group) const override { return current(group); }
  /// The scheduler of this step.
  Scheduler& active() const;

  std::vector<Scheduler*> schedulers_;
  std::vector<int64_t> milestones_;
};

/// Schedules that act together: a step is one of each, in this order, each of which changes the
/// rates that the one before has left. The schedulers, which take their step 0 when they are made,
/// must outlive it. Its state contains theirs.
class ChainedScheduler final : public Scheduler {
 public:
  /// Throws ConfigError if there is none, or if they belong to different optimizers.
  explicit ChainedScheduler(std::vector<Scheduler*> schedulers);

  void step() override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 private:
  void begin() override;
  double next_rate(size_t group) const override { return current(group); }

  std::vector<Scheduler*> schedulers_;
};

}  // namespace lockstep::optim
