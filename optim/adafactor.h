#pragma once

#include "optim/optimizer.h"

namespace lockstep::optim {

struct AdafactorOptions {
  double learning_rate = 1e-2;  ///< at least 0; relative to a parameter's root mean square
  double beta2_decay = -0.8;  ///< in step t averages of squares forget t^beta2_decay of themselves
  double epsilon1 = 1e-30;    ///< above 0: added to squares of gradients
  double epsilon2 = 1e-3;     ///< above 0: least root mean square of a parameter
  double clip = 1;            ///< above 0: largest root mean square of an update
  double weight_decay = 0;    ///< at least 0; p *= 1 - learning_rate * weight_decay in each step
  bool maximize = false;      ///< go up the gradient
};
std::vector<OptionField> fields_of(AdafactorOptions& options);
void check(const char* kind, AdafactorOptions options);

/// Adafactor (Shazeer & Stern 2018): of a matrix's squared gradients only the averages over rows
/// and over columns are kept. core/ops/optimizer/adafactor.h has the formula. It is that of
/// torch.optim.Adafactor but for epsilon1, which is the paper's. For f32 and f64 parameters. Keeps
/// exp_avg_sq_row and exp_avg_sq_col for each parameter of two or more dimensions, exp_avg_sq_row
/// of its shape for the others.
class Adafactor final : public OptimizerWith<AdafactorOptions> {
 public:
  /// Throws ConfigError if an option is out of its range, and what add_group throws.
  explicit Adafactor(const ParameterList& parameters, const AdafactorOptions& options = {});

 private:
  void update(ParameterStates states, const AdafactorOptions& options) override;
  Dims state_sizes(const Tensor& parameter, size_t tensor) const override;
};

}  // namespace lockstep::optim
