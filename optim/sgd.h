#pragma once

#include "optim/optimizer.h"

namespace lockstep::optim {

struct SGDOptions {
  double learning_rate = 1e-3;  ///< at least 0
  double momentum = 0;          ///< at least 0
  double dampening = 0;         ///< share of the gradient that momentum leaves out
  double weight_decay = 0;      ///< at least 0; added to the gradient (L2)
  bool nesterov = false;        ///< needs momentum, and no dampening
  bool maximize = false;        ///< go up the gradient
};
std::vector<OptionField> fields_of(SGDOptions& options);
void check(const char* kind, SGDOptions options);

/// Gradient descent with momentum (Sutskever et al. 2013), as torch.optim.SGD. With g the gradient
/// plus weight_decay * p:
///   b = momentum * b + (1 - dampening) g, and b = g in a parameter's first step
///   p -= learning_rate * (nesterov ? g + momentum * b : b), or g without momentum
/// f32 and f64 parameters are updated in one pass (_fused_sgd_) unless there is dampening. Keeps
/// momentum_buffer for each parameter if momentum is not 0.
class SGD final : public OptimizerWith<SGDOptions> {
 public:
  /// Throws ConfigError if an option is out of its range, and what add_group throws.
  explicit SGD(const ParameterList& parameters, const SGDOptions& options = {});

 private:
  void update(ParameterStates states, const SGDOptions& options) override;
};

}  // namespace lockstep::optim
