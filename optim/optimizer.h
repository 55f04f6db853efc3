#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optim/ignorable_tensor.h"
#include "optim/option_field.h"
#include "optim/parameter_list.h"
#include "optim/parameter_state.h"
#include "optim/state_dict.h"

namespace lockstep::optim {

class StateReader;

/// Computes the loss and its gradients: usually zero_grad, forward, backward. Returns the loss.
using Closure = std::function<Tensor()>;

/// What all optimizers of this room have in common. Formulas, names and defaults are PyTorch's.
///
///   optim::SGD optimizer(model.parameters(), {.learning_rate = 0.1});
///   for (const auto& [x, y] : batches) {
///     optimizer.zero_grad();
///     cross_entropy_loss(model.forward(x), y).backward();
///     optimizer.step();
///   }
///
/// Parameters are in groups, each with options of its own; the first group is the constructor's.
/// An optimizer shares the parameters with the model and reads their `grad`. It can be neither
/// copied nor moved, since schedulers refer to it. Not thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// "SGD", "Adam", ...
  const char* kind() const { return kind_.name; }

  /// Updates every parameter that has a gradient; nothing is recorded. Parameters without one, and
  /// their state, stay as they are. Does not wait for devices, unless the kind says so.
  virtual void step();
  /// Calls `closure` with gradients enabled, then takes the step. Returns the closure's loss.
  virtual IgnorableTensor step(const Closure& closure);
  /// Removes the gradients of all parameters; with `set_to_none` false fills those that exist with
  /// zeros instead.
  void zero_grad(bool set_to_none = true) const;

  size_t group_count() const { return groups_.size(); }
  /// Parameters of a group, in the order in which they were given.
  std::vector<Tensor> parameters(size_t group = 0) const;

  double learning_rate(size_t group = 0) const;
  /// Sets the learning rate of one group, or of all. Throws ConfigError for NaN.
  void set_learning_rate(double rate, size_t group);
  void set_learning_rate(double rate);

  // For schedulers (optim/scheduler.h).

  /// The learning rate at which schedules of this group start, if one has been made.
  std::optional<double> initial_learning_rate(size_t group) const;
  void set_initial_learning_rate(double rate, size_t group);
  /// beta1 or momentum, where there is such an option.
  std::optional<double> momentum(size_t group) const;
  void set_momentum(double value, size_t group);

  /// Options of all groups, steps and state of all parameters, under names such as
  /// "group.0.learning_rate", "step.fc1.weight" and "exp_avg.fc1.weight", or "exp_avg.0" for a
  /// parameter without a name. The tensors are the optimizer's own: clone what must not change with
  /// the next step.
  StateDict state_dict() const;
  /// Copies what `state_dict` returned, of an optimizer of this kind whose groups have as many
  /// parameters with the same names and shapes; dtypes and devices may differ. Throws
  /// CheckpointError if it does not fit, and changes nothing then.
  void load_state_dict(const StateDict& state);

 protected:
  /// What is kept between steps for a parameter, besides the number of steps.
  struct Kind {
    const char* name;
    std::vector<std::string> tensors = {};  ///< they begin undefined
    std::vector<std::string> numbers = {};  ///< they begin with 1
  };
  explicit Optimizer(Kind kind) : kind_(std::move(kind)) {}

  /// Checks the parameters, and appends a group of them. Throws Error for an empty list and for a
  /// parameter that is here already, AutogradError for one that is no leaf or does not require
  /// grad.
  void add_parameters(const ParameterList& parameters);
  /// Throws IndexError if there is no such group.
  void check_group(size_t group) const;

 private:
  struct Group {
    std::vector<ParameterState> parameters;
    std::optional<double> initial_learning_rate;
  };
  virtual std::vector<OptionField> fields(size_t group) = 0;
  virtual std::vector<OptionValue> option_values(size_t group) const = 0;
  /// Updates parameters of a group that have gradients. Their steps are counted already.
  virtual void update_group(size_t group, ParameterStates states) = 0;
  /// Sizes of the tensor number `tensor` that is kept for `parameter`.
  virtual Dims state_sizes(const Tensor& parameter, [[maybe_unused]] size_t tensor) const {
    return to_dims(parameter.sizes());
  }
  /// State that belongs to no parameter.
  virtual void save_extra(StateDict&) const {}
  /// Reads it, and returns what puts it in place.
  virtual std::function<void()> load_extra(StateReader&) {
    return [] {};
  }

  std::optional<double> find_option(std::string_view name, size_t group) const;
  /// Sets the first of these options that exists.
  void set_option(std::initializer_list<std::string_view> names, double value, size_t group);
  /// The state of `current` as `reader` has it.
  ParameterState read_state(const ParameterState& current, StateReader& reader) const;

  Kind kind_;
  std::vector<Group> groups_;
};

/// An optimizer whose groups have options of type `Options`, beside which `fields_of(Options&)` and
/// `check(const char* kind, Options)` are declared.
template <class Options>
class OptimizerWith : public Optimizer {
 public:
  /// Adds parameters with options of their own. Throws as the constructor does, and then adds
  /// nothing.
  void add_group(const ParameterList& parameters, const Options& options = {}) {
    check(kind(), options);
    add_parameters(parameters);
    options_.push_back(options);
  }
  const Options& options(size_t group = 0) const {
    check_group(group);
    return options_[group];
  }
  /// Throws ConfigError if an option is out of its range, and then changes nothing.
  void set_options(const Options& options, size_t group = 0) {
    check_group(group);
    check(kind(), options);
    options_[group] = options;
  }

 protected:
  OptimizerWith(Kind kind, const ParameterList& parameters, const Options& options)
      : Optimizer(std::move(kind)) {
    add_group(parameters, options);
  }

 private:
  /// Updates parameters that have gradients, all with the same options.
  virtual void update(ParameterStates states, const Options& options) = 0;

  void update_group(size_t group, ParameterStates states) final { update(states, options_[group]); }
  std::vector<OptionField> fields(size_t group) final { return fields_of(options_[group]); }
  std::vector<OptionValue> option_values(size_t group) const final {
    Options options = options_[group];
    return values_of(fields_of(options));
  }

  std::vector<Options> options_;
};

}  // namespace lockstep::optim
