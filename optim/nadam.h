#pragma once

#include "optim/optimizer.h"

namespace lockstep::optim {

struct NAdamOptions {
  double learning_rate = 2e-3;          ///< at least 0
  double beta1 = 0.9;                   ///< decay of the mean of gradients, from 0 to below 1
  double beta2 = 0.999;                 ///< decay of the mean of their squares, from 0 to below 1
  double epsilon = 1e-8;                ///< at least 0
  double weight_decay = 0;              ///< at least 0
  double momentum_decay = 4e-3;         ///< at least 0: how fast mu rises to beta1
  bool decoupled_weight_decay = false;  ///< weights decay as AdamW's, not through the gradient
  bool maximize = false;                ///< go up the gradient
};
std::vector<OptionField> fields_of(NAdamOptions& options);
void check(const char* kind, NAdamOptions options);

/// Adam with Nesterov momentum (Dozat 2016), as torch.optim.NAdam. m and v as Adam's; in the t-th
/// step of a parameter, with mu(t) = beta1 (1 - 0.96^(t * momentum_decay) / 2) and M(t) the product
/// of mu(1) to mu(t):
///   r = sqrt(v / (1 - beta2^t)) + epsilon
///   p -= learning_rate * ((1 - mu(t)) / (1 - M(t)) g + mu(t + 1) / (1 - M(t + 1)) m) / r
/// Keeps exp_avg, exp_avg_sq and the number mu_product for each parameter.
class NAdam final : public OptimizerWith<NAdamOptions> {
 public:
  /// Throws ConfigError if an option is out of its range, and what add_group throws.
  explicit NAdam(const ParameterList& parameters, const NAdamOptions& options = {});

 private:
  void update(ParameterStates states, const NAdamOptions& options) override;
};

}  // namespace lockstep::optim
