#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/phase.h"
#include "train/bisect/captured_call.h"
#include "train/bisect/module_names.h"
#include "train/watch/operator_watch.h"

namespace lockstep::train {

/// A call of a step, by what is the same on devices whose operators are made of other calls.
struct CallName {
  std::optional<int64_t> micro_batch;
  std::string operator_name;
  int64_t call = 0;  ///< of the operator's calls in the part, from 1
  friend auto operator<=>(const CallName&, const CallName&) = default;
};

/// Keeps what the calls of a step write, from call number `first` on, from 0, until they take
/// `bytes`, at least one.
class ValueStore final : public OperatorWatch {
 public:
  ValueStore(size_t first, size_t bytes) : first_(first), bytes_(bytes) {}

  /// Copies on the cpu, or null.
  const std::vector<Tensor>* find(const CallName& name) const;
  /// Number of the first call that had no room; nothing if all had.
  std::optional<size_t> next() const { return next_; }

 private:
  void after(const Call& call, const std::vector<Tensor>& written) override;

  size_t first_;
  size_t bytes_;
  size_t number_ = 0;  ///< of the next call of the step
  size_t taken_ = 0;
  std::map<CallName, std::vector<Tensor>> values_;
  std::optional<size_t> next_;
};

/// The first call whose numbers lie further from those of another device than is allowed.
struct BeyondTolerance {
  CallName name;
  Phase phase = Phase::kForward;
  std::string module;
  ElementDifference element;  ///< that with the largest distance
  double distance = 0;        ///< by the largest number that the call wrote
};

/// Compares what the calls of a step write with what a store kept of the same step.
class ToleranceCheck final : public OperatorWatch {
 public:
  /// Numbers may differ by `tolerance` times the largest one of their tensor. Whole numbers may
  /// not. `store` must outlive it.
  ToleranceCheck(const ValueStore& store, double tolerance)
      : store_(store), tolerance_(tolerance) {}

  const std::optional<BeyondTolerance>& found() const { return found_; }
  int64_t compared() const { return compared_; }

 private:
  void begin_part() override { modules_.begin(); }
  void before(const Call&, const Stack& stack) override { module_ = modules_.of(stack); }
  void after(const Call& call, const std::vector<Tensor>& written) override;

  const ValueStore& store_;
  double tolerance_;
  ModuleNames modules_;
  std::string module_;  ///< of the call that is being made
  int64_t compared_ = 0;
  std::optional<BeyondTolerance> found_;
};

}  // namespace lockstep::train
