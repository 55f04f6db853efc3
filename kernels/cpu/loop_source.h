#pragma once

#include "core/dispatch/element_loop.h"

namespace lockstep::cpu {

/// The source of a LoopKernel that computes what the steps' loops do (LoopBackend::source). It
/// includes headers of the standard library alone. `constants` of the kernel is an array of
/// StepConstants, one for each step. Empty for programs with a functor that no header defines, and
/// with f16, whose conversions keep a loop from being vectorised.
LoopSource loop_source(const LoopProgram& program);

}  // namespace lockstep::cpu
