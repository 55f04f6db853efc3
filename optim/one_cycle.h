#pragma once

#include "optim/scheduler.h"

namespace lockstep::optim {

enum class Annealing : uint8_t { kCosine, kLinear };

struct OneCycleLROptions {
  std::vector<double> max_learning_rate = {};  ///< one for all groups, or one for each
  int64_t total_steps = 0;                     ///< at least 1; 0: epochs * steps_per_epoch
  int64_t epochs = 0;
  int64_t steps_per_epoch = 0;
  double pct_start = 0.3;  ///< part of the cycle in which the rate rises, from 0 to 1
  Annealing annealing = Annealing::kCosine;
  bool cycle_momentum = true;  ///< momentum, or beta1, falls while the rate rises
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;         ///< the cycle begins with max_learning_rate / div_factor
  double final_div_factor = 1e4;  ///< and ends with that / final_div_factor
  bool three_phase = false;       ///< falls to the first rate in pct_start as well, then on
};

/// The 1cycle policy (Smith & Topin 2019): the rate rises from a low one to max_learning_rate and
/// falls to almost nothing. Rates follow from the step alone, so it cannot be chained with others.
class OneCycleLR final : public Scheduler {
 public:
  /// Sets initial rates and, with cycle_momentum, the momentum of all groups. Throws ConfigError if
  /// an option is out of its range, is missing, or if the optimizer has no momentum to cycle.
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);

  /// Throws ConfigError after total_steps.
  void step() override;

 private:
  struct Phase {
    double end = 0;  ///< last step
    double from_rate = 0, to_rate = 0;
    double from_momentum = 0, to_momentum = 0;
  };
  /// A phase and how much of it is over, from 0 to 1.
  struct Place {
    Phase phase;
    double part;
  };
  void begin() override;
  double next_rate(size_t group) const override;
  std::vector<Phase> phases(size_t group) const;
  Place place(size_t group) const;
  double between(double from, double to, double part) const;
  void set_momenta() const;
  void save_extra(StateDict& state) const override;
  void load_extra(StateReader& reader) override;

  OneCycleLROptions options_;
};

}  // namespace lockstep::optim
