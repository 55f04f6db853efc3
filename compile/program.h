#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/interpreter.h"
#include "compile/passes.h"

namespace lockstep::compiler {

/// What is compiled: takes and returns tensors, and may read others.
using Body = std::function<std::vector<Tensor>(TensorList)>;

/// A recorded function, with its derivative where it has one. Immutable once made; keeps the
/// tensors that the function read besides its arguments.
class Program : public std::enable_shared_from_this<Program> {
 public:
  /// What a function returned while it was recorded, and the program, or why there is none.
  struct Recorded {
    std::vector<Tensor> outputs;
    std::shared_ptr<const Program> program;
    std::string failure;
    std::vector<std::string> log;  ///< what the passes did
  };

  /// Calls `body` and records it; where its results require grad, the derivative as well. The call
  /// has the effects and the results that it has without recording. Rethrows what `body` throws.
  static Recorded record(const Body& body, TensorList inputs, const std::vector<Pass>& passes);

  /// Does what `body` did, on other tensors of the same types; the results are part of the recorded
  /// computation where those of `body` were. A second derivative throws AutogradError.
  std::vector<Tensor> run(TensorList inputs) const;

  /// Takes the function's arguments and then `captured()`. Its outputs are the function's, and what
  /// backward needs.
  const Graph& forward() const { return forward_->graph(); }
  /// Null without a derivative. Takes what forward saved, and then a gradient for each output that
  /// carries one; returns one for each input of forward.
  const Graph* backward() const { return backward_ ? &backward_->graph() : nullptr; }
  /// The tensors that the function read besides its arguments.
  const std::vector<Tensor>& captured() const { return captured_; }
  /// Whether the captured tensors have the types that they had when the program was recorded.
  bool captured_are_as_recorded() const;

 private:
  friend struct CompiledCall;

  std::optional<Interpreter> forward_;
  std::optional<Interpreter> backward_;
  std::vector<Tensor> captured_;
  std::vector<ValueType> captured_types_;
  std::vector<bool> captured_require_grad_;
  /// For each output the input that it is, if it is one.
  std::vector<std::optional<size_t>> same_as_input_;
  std::vector<bool> carries_gradient_;  ///< by output
};

}  // namespace lockstep::compiler
