#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/module.h"

namespace lockstep::train {

/// Numbers that only the device knows when a step is queued: 0-d tensors there, or undefined.
struct DeviceScalars {
  Tensor grad_factor;  ///< f64: gradients are multiplied by this as well
  Tensor found_inf;    ///< f32: if it is not 0, the device skips the step
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
                 double learning_rate, double grad_scale);

  /// Name of the update rule in configs: "adamw", "sgd", "muon".
  virtual const char* kind() const = 0;
  /// Names of the tensors that are kept for parameters: "exp_avg", ... One that works element by
  /// element keeps each of them for every parameter.
  virtual std::vector<std::string> state_names() const = 0;
  /// The state kept between steps, besides their number; names are like "exp_avg.h.0.ln_1.bias".
  /// Copying these tensors and the number of steps into another optimizer resumes from here.
  virtual std::vector<nn::StoredParameter> state() const = 0;
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
  };

 protected:
  /// All parameters must be on one device.
  explicit Optimizer(const std::vector<nn::NamedParameter>& parameters);

 private:
  virtual void update(const Update& update) = 0;
  /// Updates the parameters with these indices only.
  virtual void update(std::span<const uint32_t> parameters, const Update& update) = 0;
  void count_step(const Tensor& found_inf);

  Tensor step_count_;
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
  /// Updates all parameters by `update.gradients`, one for each.
  void update(const Optimizer::Update& update, const Tensor& step_count) const;
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
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }
  /// exp_avg and exp_avg_sq of every parameter.
  std::vector<nn::StoredParameter> state() const override { return rule_.state(); }

 private:
  void update(const Update& update) override { rule_.update(update, step_count()); }
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
  std::vector<std::string> state_names() const override;
  /// momentum_buffer of every parameter; empty without momentum.
  std::vector<nn::StoredParameter> state() const override;

 private:
  void update(const Update& update) override;
  void update(std::span<const uint32_t> parameters, const Update& update) override;

  SgdOptions options_;
  std::vector<std::string> names_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> buffers_;
  std::vector<int64_t> decayed_;
};

}  // namespace lockstep::train
