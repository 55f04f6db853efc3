#pragma once

#include "core/dispatch/element_loop.h"

namespace lockstep::cuda {

/// The source of a kernel `lockstep_loop_kernel` that computes a program's results in one pass, for
/// the GPU of this thread's KernelScope. It takes LoopParams (loop_params.h). Empty for programs
/// that need more of these than a kernel takes.
LoopSource loop_source(const LoopProgram& program);
/// NVRTC.
const LoopCompiler& loop_compiler();

}  // namespace lockstep::cuda
