#pragma once

#include <cstdint>
#include <vector>

#include "optim/optimizer.h"

namespace lockstep::optim {

enum class PlateauMode : uint8_t { kMin, kMax };
enum class ThresholdMode : uint8_t { kRelative, kAbsolute };

struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::kMin;  ///< whether lower or higher metrics are better
  double factor = 0.1;                   ///< below 1; by which rates are multiplied
  int64_t patience = 10;                 ///< steps without improvement that change nothing
  double threshold = 1e-4;               ///< smallest improvement that counts
  ThresholdMode threshold_mode = ThresholdMode::kRelative;
  int64_t cooldown = 0;                         ///< steps after a reduction that are not counted
  std::vector<double> min_learning_rate = {0};  ///< one for all groups, or one for each
  double epsilon = 1e-8;                        ///< smaller changes of a rate are not made
};

/// Multiplies the rates by a factor when a metric has not improved for more than `patience` steps.
/// It is no Scheduler, since a step takes the metric: it cannot be a part of SequentialLR or
/// ChainedScheduler. The optimizer must outlive it. Not thread-safe.
class ReduceLROnPlateau {
 public:
  /// Throws ConfigError if the factor is not below 1, or for a wrong number of lowest rates.
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  ReduceLROnPlateau(const ReduceLROnPlateau&) = delete;
  ReduceLROnPlateau& operator=(const ReduceLROnPlateau&) = delete;

  /// Call it after validation. NaN does not improve on anything.
  void step(double metric);
  int64_t last_step() const { return last_step_; }
  /// The best metric so far; infinite before the first step.
  double best() const { return best_; }
  const std::vector<double>& last_learning_rate() const { return last_rates_; }

  /// As of a Scheduler.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  bool is_better(double metric) const;
  void reduce_rates();
  void note_rates();

  Optimizer& optimizer_;
  ReduceLROnPlateauOptions options_;
  int64_t last_step_ = 0;
  double best_;
  int64_t bad_steps_ = 0;
  int64_t cooldown_left_ = 0;
  std::vector<double> last_rates_;
};

}  // namespace lockstep::optim
