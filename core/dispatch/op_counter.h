#pragma once

#include <array>
#include <map>
#include <string>

#include "core/base/phase.h"
#include "core/dispatch/mode.h"

namespace lockstep {

/// What calls of an operator came to.
struct OpCount {
  int64_t calls = 0;
  /// Additions and multiplications (a multiply-add is two) of the operators that say how many they
  /// take: products, convolutions and attention. Others count none, as is usual in this field.
  int64_t flops = 0;
  /// Of the tensors read and written, each once a call; a view's call moves none.
  int64_t bytes = 0;

  OpCount& operator+=(const OpCount& other);
  friend bool operator==(const OpCount&, const OpCount&) = default;
};

/// Counts the operators that reach backends, by phase and name.
/// `OpCounter counter; { ModeGuard on(counter); step(); } counter.total().flops`
/// For one thread.
class OpCounter final : public DispatchMode {
 public:
  using Counts = std::map<std::string, OpCount>;

  void call(const Operator& op, KeySet keys, Stack& stack) override;

  const Counts& counts(Phase phase) const { return counts_[static_cast<size_t>(phase)]; }
  /// Of all phases together, or of one.
  OpCount total() const;
  OpCount total(Phase phase) const;
  /// A line for each phase and operator, most calls first.
  std::string table() const;
  void reset();

 private:
  std::array<Counts, kPhases> counts_;
};

}  // namespace lockstep
