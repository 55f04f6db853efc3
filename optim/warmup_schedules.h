#pragma once

#include "optim/scheduler.h"

namespace lockstep::optim {

struct ConstantLROptions {
  double factor = 1.0 / 3;  ///< from 0 to 1
  int64_t total_iters = 5;  ///< steps for which it holds
};

/// Multiplies the rates by factor, and takes that back in step total_iters.
class ConstantLR final : public Scheduler {
 public:
  /// Throws ConfigError if the factor is out of its range.
  ConstantLR(Optimizer& optimizer, const ConstantLROptions& options = {});

 private:
  double next_rate(size_t group) const override;
  ConstantLROptions options_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;  ///< above 0, at most 1
  double end_factor = 1;          ///< from 0 to 1
  int64_t total_iters = 5;        ///< steps until end_factor is reached
};

/// Multiplies the rates by a factor that goes from start_factor to end_factor on a straight line:
/// warm-up, or decay.
class LinearLR final : public Scheduler {
 public:
  /// Throws ConfigError if a factor is out of its range.
  LinearLR(Optimizer& optimizer, const LinearLROptions& options = {});

 private:
  double next_rate(size_t group) const override;
  LinearLROptions options_;
};

}  // namespace lockstep::optim
