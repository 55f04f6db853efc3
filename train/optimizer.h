#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/module.h"

namespace lockstep::train {

/// Changes parameters by their gradients. Weight decay is decoupled from the gradient for AdamW
/// and acts only on tensors of two or more dimensions: norms and biases are not decayed.
/// Not thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One step over all parameters in one pass. `gradients` in the parameters' order; each is
  /// multiplied by `grad_scale` as it is read and is left as it was.
  virtual void step(const std::vector<Tensor>& gradients, double learning_rate,
                    double grad_scale) = 0;
  /// The same in parts, for who does not have all gradients yet: `begin_parts` counts the step,
  /// then each parameter is in one call of `step_part`, by its number. Bits are those of `step`.
  void begin_parts() { ++steps_; }
  virtual void step_part(std::span<const uint32_t> parameters, const std::vector<Tensor>& gradients,
                         double learning_rate, double grad_scale) = 0;

  /// The config's name of the rule: "adamw", "sgd".
  virtual const char* kind() const = 0;
  /// What the rule remembers between steps, beside their number; named "exp_avg.h.0.ln_1.bias".
  /// Filling these tensors and the number of steps makes another optimizer go on from here.
  virtual std::vector<nn::StoredParameter> state() const = 0;
  /// Steps taken so far.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 protected:
  int64_t steps_ = 0;
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
  void step(const std::vector<Tensor>& gradients, double learning_rate, double grad_scale) override;
  void step_part(std::span<const uint32_t> parameters, const std::vector<Tensor>& gradients,
                 double learning_rate, double grad_scale) override;
  const char* kind() const override { return "adamw"; }
  /// exp_avg and exp_avg_sq of every parameter.
  std::vector<nn::StoredParameter> state() const override;

 private:
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
  void step(const std::vector<Tensor>& gradients, double learning_rate, double grad_scale) override;
  void step_part(std::span<const uint32_t> parameters, const std::vector<Tensor>& gradients,
                 double learning_rate, double grad_scale) override;
  const char* kind() const override { return "sgd"; }
  /// momentum_buffer of every parameter; nothing without momentum.
  std::vector<nn::StoredParameter> state() const override;

 private:
  SgdOptions options_;
  std::vector<std::string> names_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> buffers_;
  std::vector<int64_t> decayed_;
};

}  // namespace lockstep::train
