#pragma once

#include "optim/optimizer.h"

namespace lockstep::optim {

struct RAdamOptions {
  double learning_rate = 1e-3;          ///< at least 0
  double beta1 = 0.9;                   ///< decay of the mean of gradients, from 0 to below 1
  double beta2 = 0.999;                 ///< decay of the mean of their squares, from 0 to below 1
  double epsilon = 1e-8;                ///< at least 0
  double weight_decay = 0;              ///< at least 0
  bool decoupled_weight_decay = false;  ///< weights decay as AdamW's, not through the gradient
  bool maximize = false;                ///< go up the gradient
};
std::vector<OptionField> fields_of(RAdamOptions& options);
void check(const char* kind, RAdamOptions options);

/// Adam with a rectified variance (Liu et al. 2020), as torch.optim.RAdam. m and v as Adam's; in
/// the t-th step of a parameter, with R = 2 / (1 - beta2) - 1 and r = R - 2 t beta2^t / (1 -
/// beta2^t):
///   p -= learning_rate / (1 - beta1^t) * m * c
///   c = 1 while r <= 5, then sqrt((r - 4) (r - 2) R / ((R - 4) (R - 2) r)) sqrt(1 - beta2^t) /
///       (sqrt(v) + epsilon)
/// Keeps exp_avg and exp_avg_sq for each parameter.
class RAdam final : public OptimizerWith<RAdamOptions> {
 public:
  /// Throws ConfigError if an option is out of its range, and what add_group throws.
  explicit RAdam(const ParameterList& parameters, const RAdamOptions& options = {});

 private:
  void update(ParameterStates states, const RAdamOptions& options) override;
};

}  // namespace lockstep::optim
