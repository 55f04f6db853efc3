#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compile/pass.h"
#include "core/tensor/tensor.h"

namespace lockstep {

namespace compiler {
/// What is compiled: takes and returns tensors, and may read others.
using Body = std::function<std::vector<Tensor>(TensorList)>;
}  // namespace compiler

/// When this machine's C++ compiler makes kernels of the groups of a program (docs/compile.md).
enum class KernelBuild : uint8_t {
  kNever,         ///< groups run with the operators' own loops
  kInBackground,  ///< by a thread of low priority; the loops run until a kernel is there
  kAtOnce,        ///< the call that records a program waits for them
};

struct CompileOptions {
  std::string name = "function";  ///< in the log
  /// Programs kept for one function, one for each kind of call and way through it. A call that
  /// would need one more runs without: it is eager.
  int most_programs = 8;
  std::vector<compiler::Pass> passes = compiler::default_passes();
  KernelBuild kernels = KernelBuild::kInBackground;
  /// Whether one program serves all sizes of 2 and more of a dimension after two of them were
  /// recorded (docs/compile.md, "Sizes that change"). The function must then decide nothing on the
  /// host by such a size that both records do not show.
  bool symbolic_sizes = false;
  /// Share of the memory that forward would keep for backward, 0 to 1, that it may keep: backward
  /// computes the rest again (docs/compile.md, "Less memory").
  double activation_budget = 1;
  /// On a GPU programs become CUDA graphs after a few calls (docs/compile.md, "CUDA graphs").
  bool cuda_graphs = false;
};

/// What decides, besides the state of the thread, what a call of a compiled function computes.
struct CompiledArguments {
  TensorList inputs;
  TensorList parameters = {};  ///< what the function reads of its own
  uint64_t variant = 0;        ///< stands for all else
};

/// What became of the calls of a compiled function.
struct CompileCounts {
  int64_t recorded = 0;  ///< calls that made a program
  int64_t replayed = 0;  ///< calls that ran one
  int64_t eager = 0;     ///< calls that ran the function itself
  int64_t kernels = 0;   ///< groups of all programs that run as a kernel made for them
};

}  // namespace lockstep
