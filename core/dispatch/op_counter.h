#pragma once

#include <array>
#include <map>
#include <string>

#include "core/base/phase.h"
#include "core/dispatch/mode.h"

namespace lockstep {

/// Totals over the calls of one operator.
struct OpCount {
  int64_t calls = 0;
  /// Additions and multiplications (a multiply-add is two) of the operators that declare a FLOP
  /// formula: products, convolutions and attention. Others count as 0, as FLOP counters usually do.
  int64_t flops = 0;
  /// Bytes of the tensors read and written, each counted once per call; 0 for views.
  int64_t bytes = 0;

  OpCount& operator+=(const OpCount& other);
  friend bool operator==(const OpCount&, const OpCount&) = default;
};

/// Counts of one call that has returned: its arguments and results are on `stack`.
OpCount count_call(const Operator& op, const Stack& stack);

/// Counts the operators that reach backends, by phase and name.
/// `OpCounter counter; { ModeGuard on(counter); step(); } counter.total().flops`
/// Not thread-safe: counts one thread.
class OpCounter final : public DispatchMode {
 public:
  using Counts = std::map<std::string, OpCount>;

  void call(const Operator& op, KeySet keys, Stack& stack) override;

  const Counts& counts(Phase phase) const { return counts_[static_cast<size_t>(phase)]; }
  /// Sum over all operators, in all phases or in one.
  OpCount total() const;
  OpCount total(Phase phase) const;
  /// Text table: one line for each phase and operator, most calls first within a phase.
  std::string table() const;
  void reset();

 private:
  std::array<Counts, kPhases> counts_;
};

}  // namespace lockstep
