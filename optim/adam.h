#pragma once

#include "optim/optimizer.h"

namespace lockstep::optim {

struct AdamOptions {
  double learning_rate = 1e-3;  ///< at least 0
  double beta1 = 0.9;           ///< decay of the mean of gradients, from 0 to below 1
  double beta2 = 0.999;         ///< decay of the mean of their squares, from 0 to below 1
  double epsilon = 1e-8;        ///< at least 0
  double weight_decay = 0;      ///< at least 0; added to the gradient (L2)
  bool amsgrad = false;   ///< divide by the largest mean of squares so far (Reddi et al. 2018)
  bool maximize = false;  ///< go up the gradient
};
std::vector<OptionField> fields_of(AdamOptions& options);
void check(const char* kind, AdamOptions options);

/// Adam (Kingma & Ba 2015), as torch.optim.Adam. With g the gradient plus weight_decay * p, in the
/// t-th step of a parameter:
///   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2;  amsgrad: u = max(u, v), else u = v
///   p -= learning_rate / (1 - beta1^t) * m / (sqrt(u) / sqrt(1 - beta2^t) + epsilon)
/// f32 and f64 parameters are updated in one pass (_fused_adamw_) unless amsgrad is set. Keeps
/// exp_avg and exp_avg_sq for each parameter, with amsgrad also max_exp_avg_sq.
class Adam final : public OptimizerWith<AdamOptions> {
 public:
  /// Throws ConfigError if an option is out of its range, and what add_group throws.
  explicit Adam(const ParameterList& parameters, const AdamOptions& options = {});

 private:
  void update(ParameterStates states, const AdamOptions& options) override;
};

struct AdamWOptions {
  double learning_rate = 1e-3;  ///< as in AdamOptions, like all of these but weight_decay
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;  ///< at least 0; p *= 1 - learning_rate * weight_decay in each step
  bool amsgrad = false;
  bool maximize = false;
};
std::vector<OptionField> fields_of(AdamWOptions& options);
void check(const char* kind, AdamWOptions options);

/// Adam whose weight decay does not go through the means (Loshchilov & Hutter 2019), as
/// torch.optim.AdamW. It acts on every parameter of its group: put biases and norms into a group
/// with weight_decay = 0 if they are not to decay. Keeps what Adam keeps.
class AdamW final : public OptimizerWith<AdamWOptions> {
 public:
  /// Throws ConfigError if an option is out of its range, and what add_group throws.
  explicit AdamW(const ParameterList& parameters, const AdamWOptions& options = {});

 private:
  void update(ParameterStates states, const AdamWOptions& options) override;
};

}  // namespace lockstep::optim
