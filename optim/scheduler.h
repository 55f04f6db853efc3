#pragma once

#include <cstdint>
#include <vector>

#include "optim/optimizer.h"

namespace lockstep::optim {

class StateReader;

/// Moves the learning rates of an optimizer's groups. Names, formulas and defaults are PyTorch's.
///
///   optim::CosineAnnealingLR schedule(optimizer, {.t_max = steps});
///   for (...) { ...; optimizer.step(); schedule.step(); }
///
/// The constructor takes step 0: it sets the rates that the schedule begins with, and remembers the
/// rates of before as the groups' initial learning rates unless another schedule has done so. Each
/// rate is computed from the one that the group has, so schedules may be combined, and rates that
/// are set by hand are taken into account. A group that is added later follows from the next step
/// on. The optimizer must outlive its schedulers. Not thread-safe.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// "StepLR", ...
  const char* kind() const { return kind_; }
  Optimizer& optimizer() const { return optimizer_; }
  /// Sets the rates of the next step. Call it after the optimizer's step.
  virtual void step();
  /// Steps taken, without step 0 of the constructor: PyTorch's last_epoch.
  int64_t last_step() const { return last_step_; }
  /// The rates that the last step has set, one for each group.
  const std::vector<double>& last_learning_rate() const { return last_rates_; }

  /// Where the schedule stands, and the rates that the groups have now, as numbers. Options are not
  /// part of it: they are the constructor's.
  virtual StateDict state_dict() const;
  /// Continues from what `state_dict` returned, and sets the rates of the groups, so it does not
  /// matter whether the optimizer's state is loaded before or after. Throws CheckpointError if it
  /// is the state of another kind of scheduler or of other groups.
  virtual void load_state_dict(const StateDict& state);

 protected:
  Scheduler(const char* kind, Optimizer& optimizer);
  friend class SequentialLR;
  friend class ChainedScheduler;

  /// The rate that the group has now.
  double current(size_t group) const { return optimizer_.learning_rate(group); }
  /// The rate that it has had at the beginning.
  double base(size_t group) const { return bases_[group]; }
  /// Whether this is step 0.
  bool is_initial() const { return last_step_ == 0; }

  /// Takes step 0. Constructors end with it.
  virtual void begin();
  /// The rate of a group in step last_step().
  virtual double next_rate(size_t group) const = 0;
  /// Remembers the rates of the groups as those that were set.
  void note_rates();
  void set_last_step(int64_t step) { last_step_ = step; }
  /// Takes in groups that were added since the last step.
  void add_bases();
  /// Sets every group's rate to the one it began with.
  void reset_rates();

  virtual void save_extra(StateDict&) const {}
  virtual void load_extra(StateReader&) {}

 private:
  const char* kind_;
  Optimizer& optimizer_;
  std::vector<double> bases_;
  std::vector<double> last_rates_;
  int64_t last_step_ = -1;
};

}  // namespace lockstep::optim
