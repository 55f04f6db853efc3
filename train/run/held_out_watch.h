#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::train {

/// What a run does with the held-out losses of its evaluations.
struct HeldOutRule {
  int64_t patience = 0;    ///< train.early_stopping; 0: training does not end early
  double min_delta = 0;    ///< how far a loss must fall to count for `patience`
  bool keep_best = false;  ///< checkpoint.keep_best

  bool compares() const { return patience > 0 || keep_best; }
};

/// The held-out losses so far; part of checkpoints.
struct HeldOutMemory {
  double lowest = 0;        ///< of all evaluations
  int64_t lowest_step = 0;  ///< steps done then
  double reference = 0;     ///< the last loss that counted as a new lowest for `patience`
  int64_t since = 0;        ///< evaluations since then
  friend bool operator==(const HeldOutMemory&, const HeldOutMemory&) = default;
};

/// Follows the held-out loss: which checkpoint is the best, and whether training still helps.
class HeldOutWatch {
 public:
  explicit HeldOutWatch(HeldOutRule rule) : rule_(rule) {}

  const HeldOutRule& rule() const { return rule_; }
  /// Notes an evaluation after `step` steps. Returns whether its loss is the lowest so far; one
  /// that is not finite never is.
  bool add(int64_t step, double loss);
  /// Whether training is to end.
  bool is_over() const { return rule_.patience > 0 && memory_ && memory_->since >= rule_.patience; }
  /// The step whose checkpoint is to be kept.
  std::optional<int64_t> best_step() const;
  /// Why training ends.
  std::string reason() const;

  /// Nothing before the first evaluation with a finite loss.
  const std::optional<HeldOutMemory>& memory() const { return memory_; }
  void remember(const std::optional<HeldOutMemory>& memory) { memory_ = memory; }

 private:
  HeldOutRule rule_;
  std::optional<HeldOutMemory> memory_;
};

}  // namespace lockstep::train
