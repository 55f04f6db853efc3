#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/module.h"

namespace lockstep::train {

/// What the device alone knows when a step is queued: numbers there, 0-d, or undefined.
struct KnownThere {
  Tensor grad_factor;  ///< f64: gradients are multiplied by this as well
  Tensor found_inf;    ///< f32: where it is not 0, the step is left out
};

/// Changes parameters by their gradients. Weight decay is decoupled from the gradient for AdamW
/// and acts only on tensors of two or more dimensions: norms and biases are not decayed.
///
/// How many steps were taken is known where the parameters are, and nothing here waits for it but
/// `steps`: work queued for one step, or recorded to be replayed, fits every other.
/// Not thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One step over all parameters in one pass. `gradients` in the parameters' order; each is
  /// multiplied by `grad_scale` as it is read and is left as it was.
  void step(const std::vector<Tensor>& gradients, double learning_rate, double grad_scale,
            const KnownThere& known_there = {});
  /// The same in parts, for who does not have all gradients yet: `begin_parts` counts the step,
  /// then each parameter is in one call of `step_part`, by its number. Bits are those of `step`.
  void begin_parts() { count_step({}); }
  void step_part(std::span<const uint32_t> parameters, const std::vector<Tensor>& gradients,
                 double learning_rate, double grad_scale);

  /// The config's name of the rule: "adamw", "sgd".
  virtual const char* kind() const = 0;
  /// What the rule remembers between steps, beside their number; named "exp_avg.h.0.ln_1.bias".
  /// Filling these tensors and the number of steps makes another optimizer go on from here.
  virtual std::vector<nn::StoredParameter> state() const = 0;
  /// Steps taken so far, without those that were left out: f64, 0-d, where the parameters are.
  const Tensor& step_count() const { return step_count_; }
  /// The same number. Waits for what was queued there.
  int64_t steps() const;
  void set_steps(int64_t steps);

 protected:
  /// For parameters on one device.
  explicit Optimizer(const std::vector<nn::NamedParameter>& parameters);

  /// Of one step.
  struct Update {
    const std::vector<Tensor>& gradients;
    double learning_rate;
    double grad_scale;
    KnownThere known_there;
  };

 private:
  virtual void update(const Update& update) = 0;
  /// Of these parameters alone.
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

/// Loshchilov & Hutter 2019.
class AdamW final : public Optimizer {
 public:
  AdamW(const std::vector<nn::NamedParameter>& parameters, AdamWOptions options);
  const char* kind() const override { return "adamw"; }
  /// exp_avg and exp_avg_sq of every parameter.
  std::vector<nn::StoredParameter> state() const override;

 private:
  void update(const Update& update) override;
  void update(std::span<const uint32_t> parameters, const Update& update) override;

  AdamWOptions options_;
  std::vector<std::string> names_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> means_;
  std::vector<Tensor> squares_;
  std::vector<int64_t> decayed_;
};

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0.1;
};

/// Gradient descent with (Nesterov) momentum; its decay is added to the gradient.
class Sgd final : public Optimizer {
 public:
  Sgd(const std::vector<nn::NamedParameter>& parameters, SgdOptions options);
  const char* kind() const override { return "sgd"; }
  /// momentum_buffer of every parameter; nothing without momentum.
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
