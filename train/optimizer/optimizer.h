#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"

namespace lockstep::dist {
class ProcessGroup;
class ShardedModel;
}  // namespace lockstep::dist

namespace lockstep::train {

/// Numbers that only the device knows when a step is queued: 0-d tensors there, or undefined.
struct DeviceScalars {
  Tensor grad_factor;  ///< f64: gradients are multiplied by this as well
  Tensor found_inf;    ///< f32: if it is not 0, the device skips the step
  Tensor rate_factor;  ///< f64: the learning rate is multiplied by this as well
};

/// Changes parameters by their gradients. Weight decay is decoupled from the gradient for AdamW
/// and acts only on tensors of two or more dimensions: norms and biases are not decayed.
///
/// The step count is a tensor on the parameters' device, and only `steps` waits for it: work queued
/// for one step, or captured in a graph, is valid for every other. Not thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Updates all parameters in one pass. `gradients` are in the parameters' order; each is
  /// multiplied by `grad_scale` as it is read and is not modified.
  void step(const std::vector<Tensor>& gradients, double learning_rate, double grad_scale,
            const DeviceScalars& known_there = {});
  /// A step in parts, for callers that do not have all gradients yet: `begin_parts` counts the
  /// step, then each parameter's index is passed to exactly one call of `step_part`. The resulting
  /// bits are those of `step`.
  void begin_parts() { count_step({}); }
  void step_part(std::span<const uint32_t> parameters, const std::vector<Tensor>& gradients,
                 double learning_rate, double grad_scale, const DeviceScalars& known_there = {});

  /// How some of the parameters are updated.
  struct Group {
    double rate_factor = 1;                   ///< of the learning rate
    std::optional<double> weight_decay = {};  ///< instead of the update rule's
  };
  /// From now on parameter i is updated as `groups[group_of[i]]` says. Changes no state.
  void choose_groups(std::vector<Group> groups, std::vector<size_t> group_of);

  /// From now on the ranks of `group` take every `step` together, with the same arguments, and
  /// share what an update rule computes at length (Muon). Changes no bit. Null, as in the
  /// beginning: this rank computes all of it. `step_part` never shares.
  void share_between(dist::ProcessGroup* group) { group_ = group; }

  /// Whether steps may have a DeviceScalars::rate_factor, and call operators alone: others must not
  /// be captured in a graph.
  virtual bool may_be_captured() const { return false; }

  /// Says that the parameters are this rank's parts of those of `model`, in the same order. From
  /// now on every `step` is collective in its ranks where an update rule needs whole tensors
  /// (Muon, Adafactor), and `step_part` is for rules that work element by element alone. Call once,
  /// before the first step; the model must outlive the steps.
  virtual void keep_parts_of(const dist::ShardedModel& model) { (void)model; }

  /// Name of the update rule in configs: "adamw", "sgd", "muon", "lion", "adafactor".
  virtual const char* kind() const = 0;
  /// Names of the tensors that are kept for parameters: "exp_avg", ...
  std::vector<std::string> state_names() const;
  /// Whether the tensor of one of these names is kept for a parameter, whole or a part.
  bool keeps_state(std::string_view name, const nn::NamedParameter& parameter) const;
  /// Sizes of the tensor of one of these names that is kept for a whole parameter.
  Dims state_sizes(std::string_view name, const nn::NamedParameter& parameter) const;
  /// After keep_parts_of: the rank of the model's shards() that keeps the whole tensor of one of
  /// these names for trained parameter `number`. None: each rank keeps that of its part.
  std::optional<int> state_owner(std::string_view name, size_t number) const;
  /// The state kept between steps, besides their number; names are like "exp_avg.h.0.ln_1.bias".
  /// Copying these tensors and the number of steps into another optimizer resumes from here.
  std::vector<nn::StoredParameter> state() const;

  /// From now on keeps an exponential moving average of each of `parameters`, those of the
  /// constructor, in "average.NAME" of the state: average = decay * average + (1 - decay) *
  /// parameter after each step that is not skipped, and the parameter after the first. Call once,
  /// before the first step.
  void keep_averages(const std::vector<nn::NamedParameter>& parameters, double decay);
  bool keeps_averages() const { return !averages_.empty(); }
  /// Swaps the values of the parameters and of their averages.
  void exchange_averages();
  /// Steps taken so far, without skipped ones: f64, 0-d, on the parameters' device.
  const Tensor& step_count() const { return step_count_; }
  /// Value of step_count(). Waits for the work queued on the device.
  int64_t steps() const;
  void set_steps(int64_t steps);

  /// Arguments of one step.
  struct Update {
    const std::vector<Tensor>& gradients;
    double learning_rate;
    double grad_scale;
    DeviceScalars known_there;
    std::optional<double> weight_decay = {};  ///< instead of the rule's own
    dist::ProcessGroup* sharers = nullptr;    ///< the ranks that take this step together

    double decay_or(double own) const { return weight_decay.value_or(own); }
  };

 protected:
  /// All parameters must be on one device.
  explicit Optimizer(const std::vector<nn::NamedParameter>& parameters);
  /// `update` of a whole step as the group of parameter `number` has it.
  Update of_group(uint32_t number, const Update& update) const;

 private:
  /// Called in each `step` before the updates, for all parameters.
  virtual void update_parts(const Update& update) { (void)update; }
  /// Updates the parameters with these indices; the gradients of others may be undefined.
  virtual void update(std::span<const uint32_t> parameters, const Update& update) = 0;
  /// state_names() and state() of the update rule.
  virtual std::vector<std::string> rule_state_names() const = 0;
  virtual std::vector<nn::StoredParameter> rule_state() const = 0;
  /// keeps_state() of the update rule. Default: each for every parameter, as a rule that works
  /// element by element.
  virtual bool rule_keeps(std::string_view name, const nn::NamedParameter& parameter) const {
    (void)name, (void)parameter;
    return true;
  }
  /// state_sizes() of the update rule. Default: those of the parameter.
  virtual Dims rule_state_sizes(std::string_view name, const nn::NamedParameter& parameter) const {
    (void)name;
    return to_dims(parameter.tensor.sizes());
  }
  /// state_owner() of the update rule. Default: none.
  virtual std::optional<int> rule_state_owner(size_t number) const {
    (void)number;
    return std::nullopt;
  }
  void update_groups(std::span<const uint32_t> parameters, const Update& update);
  void count_step(const Tensor& found_inf);
  void move_averages(std::span<const uint32_t> parameters, const Tensor& found_inf);

  std::vector<uint32_t> all_;  ///< indices of the parameters
  std::vector<Group> groups_;  ///< empty: all parameters are updated alike
  std::vector<size_t> group_of_;
  Tensor step_count_;
  struct Average {
    std::string name;
    Tensor parameter;
    Tensor value;
  };
  std::vector<Average> averages_;
  double average_decay_ = 0;
  dist::ProcessGroup* group_ = nullptr;
};

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};

/// AdamW's update of a list of parameters, and their state. The caller counts the steps.
class AdamWRule {
 public:
  AdamWRule(const std::vector<nn::NamedParameter>& parameters, AdamWOptions options);

  size_t size() const { return names_.size(); }
  /// Updates the parameters with these indices; the gradients of others may be undefined.
  void update(std::span<const uint32_t> parameters, const Optimizer::Update& update,
              const Tensor& step_count) const;
  /// exp_avg and exp_avg_sq of every parameter.
  std::vector<nn::StoredParameter> state() const;

 private:
  AdamWOptions options_;
  std::vector<std::string> names_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> means_;
  std::vector<Tensor> squares_;
  std::vector<int64_t> decayed_;
};

/// AdamW (Loshchilov & Hutter 2019).
class AdamW final : public Optimizer {
 public:
  AdamW(const std::vector<nn::NamedParameter>& parameters, AdamWOptions options)
      : Optimizer(parameters), rule_(parameters, options) {}
  const char* kind() const override { return "adamw"; }
  bool may_be_captured() const override { return true; }

 private:
  std::vector<std::string> rule_state_names() const override { return {"exp_avg", "exp_avg_sq"}; }
  /// exp_avg and exp_avg_sq of every parameter.
  std::vector<nn::StoredParameter> rule_state() const override { return rule_.state(); }
  void update(std::span<const uint32_t> parameters, const Update& update) override {
    rule_.update(parameters, update, step_count());
  }

  AdamWRule rule_;
};

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0.1;
};

/// Gradient descent with (Nesterov) momentum; weight decay is added to the gradient.
class Sgd final : public Optimizer {
 public:
  Sgd(const std::vector<nn::NamedParameter>& parameters, SgdOptions options);
  const char* kind() const override { return "sgd"; }
  bool may_be_captured() const override { return true; }

 private:
  std::vector<std::string> rule_state_names() const override;
  /// momentum_buffer of every parameter; empty without momentum.
  std::vector<nn::StoredParameter> rule_state() const override;
  void update(std::span<const uint32_t> parameters, const Update& update) override;

  SgdOptions options_;
  std::vector<std::string> names_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> buffers_;
  std::vector<int64_t> decayed_;
};

struct LionOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.1;
};

/// Lion (Chen et al. 2023).
class Lion final : public Optimizer {
 public:
  Lion(const std::vector<nn::NamedParameter>& parameters, LionOptions options);
  const char* kind() const override { return "lion"; }
  bool may_be_captured() const override { return true; }

 private:
  std::vector<std::string> rule_state_names() const override { return {"exp_avg"}; }
  /// exp_avg of every parameter.
  std::vector<nn::StoredParameter> rule_state() const override;
  void update(std::span<const uint32_t> parameters, const Update& update) override;

  LionOptions options_;
  std::vector<std::string> names_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> means_;
  std::vector<int64_t> decayed_;
};

}  // namespace lockstep::train
