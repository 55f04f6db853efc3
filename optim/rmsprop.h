#pragma once

#include "optim/optimizer.h"

namespace lockstep::optim {

struct RMSpropOptions {
  double learning_rate = 1e-2;  ///< at least 0
  double alpha = 0.99;          ///< decay of the mean of squares, at least 0
  double epsilon = 1e-8;        ///< at least 0
  double weight_decay = 0;      ///< at least 0; added to the gradient (L2)
  double momentum = 0;          ///< at least 0
  bool centered = false;        ///< divide by the deviation from the mean gradient
  bool maximize = false;        ///< go up the gradient
};
std::vector<OptionField> fields_of(RMSpropOptions& options);
void check(const char* kind, RMSpropOptions options);

/// RMSprop (Tieleman & Hinton 2012; centered: Graves 2013), as torch.optim.RMSprop. With g the
/// gradient plus weight_decay * p:
///   v = alpha v + (1 - alpha) g^2;  centered: m += (1 - alpha) (g - m), r = sqrt(v - m^2)
///   b = momentum * b + g / (r + epsilon), r = sqrt(v) if not centered;  p -= learning_rate * b
/// Keeps square_avg for each parameter, if needed also momentum_buffer and grad_avg.
class RMSprop final : public OptimizerWith<RMSpropOptions> {
 public:
  /// Throws ConfigError if an option is out of its range, and what add_group throws.
  explicit RMSprop(const ParameterList& parameters, const RMSpropOptions& options = {});

 private:
  void update(ParameterStates states, const RMSpropOptions& options) override;
};

}  // namespace lockstep::optim
