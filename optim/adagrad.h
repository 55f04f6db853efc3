#pragma once

#include "optim/optimizer.h"

namespace lockstep::optim {

struct AdagradOptions {
  double learning_rate = 1e-2;           ///< at least 0
  double lr_decay = 0;                   ///< at least 0: by 1 + (t - 1) lr_decay in step t
  double weight_decay = 0;               ///< at least 0; added to the gradient (L2)
  double initial_accumulator_value = 0;  ///< at least 0: where sums of squares begin
  double epsilon = 1e-10;                ///< at least 0
  bool maximize = false;                 ///< go up the gradient
};
std::vector<OptionField> fields_of(AdagradOptions& options);
void check(const char* kind, AdagradOptions options);

/// Adagrad (Duchi et al. 2011), as torch.optim.Adagrad. With g the gradient plus weight_decay * p,
/// in the t-th step of a parameter:
///   s += g^2;  p -= learning_rate / (1 + (t - 1) lr_decay) * g / (sqrt(s) + epsilon)
/// Keeps sum for each parameter.
class Adagrad final : public OptimizerWith<AdagradOptions> {
 public:
  /// Throws ConfigError if an option is out of its range, and what add_group throws.
  explicit Adagrad(const ParameterList& parameters, const AdagradOptions& options = {});

 private:
  void update(ParameterStates states, const AdagradOptions& options) override;
};

}  // namespace lockstep::optim
