#pragma once

#include "optim/scheduler.h"

namespace lockstep::optim {

struct CosineAnnealingLROptions {
  int64_t t_max = 0;   ///< steps from the highest to the lowest rate, at least 1; must be given
  double eta_min = 0;  ///< the lowest rate
};

/// Half a cosine from the initial rates down to eta_min (Loshchilov & Hutter 2017, without
/// restarts). After t_max the rates rise again.
class CosineAnnealingLR final : public Scheduler {
 public:
  /// Throws ConfigError if t_max is below 1.
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options);

 private:
  double next_rate(size_t group) const override;
  CosineAnnealingLROptions options_;
};

struct CosineAnnealingWarmRestartsOptions {
  int64_t t_0 = 0;     ///< steps until the first restart, at least 1; must be given
  int64_t t_mult = 1;  ///< at least 1: how many times as long each period is as the one before
  double eta_min = 0;  ///< the lowest rate
};

/// Half a cosine from the initial rates down to eta_min, again and again (Loshchilov & Hutter
/// 2017). The rates follow from the step alone, so it cannot be chained with others.
class CosineAnnealingWarmRestarts final : public Scheduler {
 public:
  /// Throws ConfigError if an option is out of its range.
  CosineAnnealingWarmRestarts(Optimizer& optimizer,
                              const CosineAnnealingWarmRestartsOptions& options);

  void step() override;
  /// Goes to `epoch`, which may be a fraction: epoch + batch / batches. Throws ConfigError if it is
  /// below 0.
  void step(double epoch);

 private:
  void begin() override;
  double next_rate(size_t group) const override;
  void save_extra(StateDict& state) const override;
  void load_extra(StateReader& reader) override;

  CosineAnnealingWarmRestartsOptions options_;
  double period_ = 0;     ///< steps from the last restart to the next
  double in_period_ = 0;  ///< steps since the last restart
};

}  // namespace lockstep::optim
