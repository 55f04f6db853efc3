#pragma once

#include "core/dispatch/element_loop.h"

namespace lockstep::cpu {

/// Elements that a program computes at a time: a few of them in each dtype lie in a core's first
/// cache, and a call of a loop costs little beside it.
inline constexpr int64_t kProgramBlock = 1024;

/// Whether the slot's rows are so long that a block ends where one does: it reads one part of a
/// row, and one element of a column.
inline bool has_long_rows(const LoopProgram::Slot& slot) {
  using Place = LoopProgram::Place;
  return (slot.place == Place::kRow || slot.place == Place::kColumn || slot.place == Place::kRows ||
          slot.place == Place::kGathered) &&
         slot.period > kProgramBlock / 2;
}

/// What a LoopKernel of the cpu is: computes `count` elements. `at` has the address of each slot's
/// first element, of a result or an operand; those of kScratch stay in registers. `constants` is an
/// array of StepConstants, one for each step.
using LoopFunction = void (*)(int64_t count, void* const* at, const void* constants);

/// The source of a LoopFunction that computes what the steps' loops do (LoopBackend::source). It
/// includes headers of the standard library alone. Empty for programs with a functor that no header
/// defines, and with f16, whose conversions keep a loop from being vectorised.
LoopSource loop_source(const LoopProgram& program);

}  // namespace lockstep::cpu
