#pragma once

#include "optim/optimizer.h"

namespace lockstep::optim {

struct AdadeltaOptions {
  double learning_rate = 1;  ///< at least 0
  double rho = 0.9;          ///< decay of both means of squares, from 0 to 1
  double epsilon = 1e-6;     ///< at least 0
  double weight_decay = 0;   ///< at least 0; added to the gradient (L2)
  bool maximize = false;     ///< go up the gradient
};
std::vector<OptionField> fields_of(AdadeltaOptions& options);
void check(const char* kind, AdadeltaOptions options);

/// Adadelta (Zeiler 2012), as torch.optim.Adadelta. With g the gradient plus weight_decay * p:
///   v = rho v + (1 - rho) g^2;  d = sqrt(u + epsilon) / sqrt(v + epsilon) g
///   u = rho u + (1 - rho) d^2;  p -= learning_rate * d
/// Keeps square_avg (v) and acc_delta (u) for each parameter.
class Adadelta final : public OptimizerWith<AdadeltaOptions> {
 public:
  /// Throws ConfigError if an option is out of its range, and what add_group throws.
  explicit Adadelta(const ParameterList& parameters, const AdadeltaOptions& options = {});

 private:
  void update(ParameterStates states, const AdadeltaOptions& options) override;
};

}  // namespace lockstep::optim
