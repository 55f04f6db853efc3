#pragma once

#include <vector>

#include "compile/compile.h"
#include "compile/loop_group.h"
#include "compile/native/kernel_builder.h"
#include "compile/program.h"
#include "tests/cuda/gpu.h"

namespace lockstep {

/// The source of the one kernel that is made of a function.
inline compiler::NativeSource kernel_source(const compiler::Body& body, TensorList inputs) {
  const CompiledFunction compiled(body);
  (void)compiled(inputs);
  const auto program = compiled.programs().at(0);
  return program->kernels().at(0)->pending()->source();
}

}  // namespace lockstep
