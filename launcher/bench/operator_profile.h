#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/phase.h"
#include "core/dispatch/mode.h"
#include "core/dispatch/op_counter.h"
#include "core/tensor/device.h"
#include "core/tensor/dtype.h"
#include "profile/machine_peaks.h"

namespace lockstep::launcher {

/// Time and work of one operator in one phase and dtype.
struct OperatorCost {
  Phase phase = Phase::kForward;
  std::string name;
  DType dtype = DType::kF32;  ///< of the first result; of the first argument where there is none
  OpCount count;
  double seconds = 0;
};

/// Time that the operators of a training step take, seen as they reach the backend: composites
/// appear as the operators they are made of. On a device with streams each call is waited for, so
/// that its time is known; nothing overlaps then, and the step takes longer than without.
/// Not thread-safe: it profiles one thread.
class OperatorProfile final : public DispatchMode {
 public:
  explicit OperatorProfile(Device device) : device_(device) {}

  void call(const Operator& op, KeySet keys, Stack& stack) override;

  /// Totals of all calls so far, the longest time first.
  std::vector<OperatorCost> costs() const;
  void reset() { costs_.clear(); }

 private:
  Device device_;
  std::map<std::tuple<Phase, std::string, DType>, OperatorCost> costs_;
};

/// The time that a cost would take at the machine's peaks: the longer one of its arithmetic at the
/// peak of its dtype, and of its bytes at the memory's bandwidth, in seconds.
double limit_seconds(const OperatorCost& cost, const profile::MachinePeaks& peaks);

/// A table of `costs` over `steps` steps that took `step_seconds` each: for each row calls, time,
/// share of the step, rates reached, the limit, and the loss, which is the time above the limit.
/// Rows below `least_share` of the step are joined in one row; the last rows are the time between
/// operators and the total.
std::string profile_table(const std::vector<OperatorCost>& costs,
                          const profile::MachinePeaks& peaks, int64_t steps, double step_seconds,
                          double least_share = 0.002);

/// Returns the same as one JSON object for each operator, without joining rows; ends in a line end.
std::string profile_json(const std::vector<OperatorCost>& costs, const profile::MachinePeaks& peaks,
                         int64_t steps);

}  // namespace lockstep::launcher
