#pragma once

#include <cstdint>

#include "core/base/scoped_value.h"

namespace lockstep {

/// The part of a training step that a thread is in.
enum class Phase : uint8_t { kForward, kBackward, kOptimizer };
inline constexpr int kPhases = 3;
constexpr const char* name(Phase phase) {
  constexpr const char* kNames[] = {"forward", "backward", "optimizer"};
  return kNames[static_cast<int>(phase)];
}

namespace detail {
inline thread_local constinit Phase thread_phase = Phase::kForward;
}  // namespace detail

inline Phase current_phase() noexcept { return detail::thread_phase; }

/// While alive, marks this thread as being in `phase`; the autograd engine and the optimizers use
/// it. For statistics only: it does not affect any computation.
class PhaseGuard {
 public:
  [[nodiscard]] explicit PhaseGuard(Phase phase) noexcept : phase_(detail::thread_phase, phase) {}

 private:
  ScopedValue<Phase> phase_;
};

}  // namespace lockstep
