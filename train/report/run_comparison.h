#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "train/report/metrics_history.h"

namespace lockstep::train {

/// Whether two recorded numbers are the same; all NaNs are.
bool same_bits(double a, double b);

/// Result of comparing two runs: the first differences.
struct RunComparison {
  /// Two records of one step that differ in bits.
  struct Difference {
    enum Between { kRuns, kRepeatsInA, kRepeatsInB };
    int64_t step = 0;
    const char* quantity = "";  ///< "loss", "grad_norm" or "val_loss"
    double a = 0;               ///< or the first record, for repeats within one run
    double b = 0;
    Between between = kRuns;
  };
  /// A step that only one of the runs has.
  struct Missing {
    int64_t step = 0;
    bool from_a = false;  ///< a lacks it, b has it
  };

  int64_t steps_of_a = 0;
  int64_t steps_of_b = 0;
  int64_t common_steps = 0;
  std::optional<Difference> difference;  ///< the first
  std::optional<Missing> missing;        ///< the first

  bool identical() const { return !difference && !missing; }
  /// The first step at which the runs are not the same. Only for runs that are not identical.
  int64_t first_differing_step() const;
};

/// Compares loss and gradient norm of every step bit for bit, and the validation loss if both runs
/// have one. NaN equals NaN; 0 and -0 differ. Two records of one step in one run, after it went
/// back to a checkpoint, must agree too.
RunComparison compare_runs(std::span<const MetricsRecord> a, std::span<const MetricsRecord> b);

/// Describes the result in a few lines; `a` and `b` are the runs' names.
std::string describe(const RunComparison& comparison, const std::string& a, const std::string& b);

}  // namespace lockstep::train
