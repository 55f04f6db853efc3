#pragma once

#include "optim/optimizer.h"

namespace lockstep::optim {

struct LionOptions {
  double learning_rate = 1e-4;  ///< at least 0
  double beta1 = 0.9;           ///< weight of the mean in a step's direction, from 0 to below 1
  double beta2 = 0.99;          ///< decay of the mean of gradients, from 0 to below 1
  double weight_decay = 0;      ///< at least 0; p *= 1 - learning_rate * weight_decay in each step
  bool maximize = false;        ///< go up the gradient
};
std::vector<OptionField> fields_of(LionOptions& options);
void check(const char* kind, LionOptions options);

/// Lion (Chen et al. 2023, algorithm 2), with the defaults of the paper. With g the gradient:
///   p -= learning_rate * (sign(beta1 m + (1 - beta1) g) + weight_decay * p)
///   m = beta2 m + (1 - beta2) g
/// f32 and f64 parameters are updated in one pass (_fused_lion_). Keeps exp_avg for each parameter.
class Lion final : public OptimizerWith<LionOptions> {
 public:
  /// Throws ConfigError if an option is out of its range, and what add_group throws.
  explicit Lion(const ParameterList& parameters, const LionOptions& options = {});

 private:
  void update(ParameterStates states, const LionOptions& options) override;
};

}  // namespace lockstep::optim
