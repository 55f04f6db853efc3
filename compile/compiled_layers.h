#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compile/options.h"

namespace lockstep {

namespace compiler {
class Program;  // compile/program.h
class ProgramCache;
}  // namespace compiler

/// Layers that compute the same of parameters of their own, compiled as one function: what was
/// recorded of one layer runs for all. Bits of results and gradients are those of the layers.
///
/// While somebody looks at the calls of the thread (modes, observers, saved-tensor hooks, anomaly
/// mode), in inference mode, and where a layer cannot be recorded (Program::record_apart), the
/// layer itself runs. Calls of several threads may overlap where calls of the layers may.
class CompiledLayers {
 public:
  explicit CompiledLayers(CompileOptions options = {});

  /// Returns body(call.inputs), or the same from a program. `body` must compute a function of the
  /// call's inputs, parameters, in one order for all layers, and variant. Throws what it throws.
  std::vector<Tensor> operator()(const compiler::Body& body, const CompiledArguments& call) const;

  CompileCounts counts() const;
  /// Why each program behind the first was recorded, why calls run eagerly, and why groups run
  /// without a kernel, each once.
  std::vector<std::string> reasons() const;
  /// The programs so far, in the order in which they were recorded; of those for all sizes, one for
  /// each size that is kept, the latest first.
  std::vector<std::shared_ptr<const compiler::Program>> programs() const;

 private:
  std::shared_ptr<compiler::ProgramCache> programs_;
};

}  // namespace lockstep
