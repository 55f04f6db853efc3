#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "compile/options.h"

namespace lockstep {

namespace compiler {
class Program;  // compile/program.h
class ProgramCache;
}  // namespace compiler

/// A function of tensors that is recorded the first time it is called with tensors of certain
/// types, and run from the record afterwards: the same operators on the same kernels, so the same
/// bits, forward and backward. docs/compile.md says what a record holds.
///
/// The function must compute the same operators for the same types: what it decides by the clock,
/// or by counters of its own is decided once, when it is recorded. Reading elements (`item`) is
/// noticed: what follows is recorded for each value that is read, and a call runs what was recorded
/// for its values. Tensors that it reads besides its arguments are kept, with the elements that
/// they have at each call.
///
/// Calls of several threads may overlap where calls of the function may.
class CompiledFunction {
 public:
  explicit CompiledFunction(compiler::Body body, CompileOptions options = {});

  /// Throws what the function throws.
  std::vector<Tensor> operator()(TensorList inputs) const;

  CompileCounts counts() const;
  /// Why each program behind the first was recorded, why calls run eagerly, and why groups run
  /// without a kernel, each once: "input 0
  /// is float32[4, 3], not float32[2, 3]".
  std::vector<std::string> reasons() const;
  /// The programs so far, in the order in which they were recorded; of those for all sizes, one for
  /// each size that is kept, the latest first.
  std::vector<std::shared_ptr<const compiler::Program>> programs() const;

 private:
  compiler::Body body_;
  std::shared_ptr<compiler::ProgramCache> programs_;
};

/// A compiled function of one tensor that returns one.
class CompiledTensorFunction : public CompiledFunction {
 public:
  using CompiledFunction::CompiledFunction;
  Tensor operator()(const Tensor& input) const {
    return CompiledFunction::operator()(TensorList(&input, 1)).at(0);
  }
};

/// Compiles a function of `TensorList` that returns a vector of tensors.
template <class F>
requires std::is_invocable_r_v<std::vector<Tensor>, F&, TensorList> CompiledFunction
compile(F function, CompileOptions options = {}) {
  return CompiledFunction(compiler::Body(std::move(function)), std::move(options));
}
/// Compiles a function of one tensor that returns one.
template <class F>
requires std::is_invocable_r_v<Tensor, F&, const Tensor&> CompiledTensorFunction
compile(F function, CompileOptions options = {}) {
  return CompiledTensorFunction(
      [function = std::move(function)](TensorList inputs) {
        return std::vector<Tensor>{function(inputs[0])};
      },
      std::move(options));
}

}  // namespace lockstep
