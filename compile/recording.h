#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compile/parameter_casts.h"
#include "compile/program.h"
#include "compile/recorder.h"

namespace lockstep::compiler {

/// How a program is recorded: calls of the body, and of its derivative, under a Recorder, and what
/// becomes of the graph that these make.
class Program::Recording {
 public:
  explicit Recording(const CompileOptions& options) : options_(options) {}

  Recorder& recorder() { return recorder_; }
  /// Calls the body, and splits the program where it reads values on the host if it `may_read`.
  std::vector<Tensor> call(const Body& body, TensorList inputs, bool may_read) {
    recorder_.split_at_reads(may_read);
    const ModeGuard recording(recorder_);
    std::vector<Tensor> outputs = body(inputs);
    recorder_.split_at_reads(false);  // not in backward
    return outputs;
  }

  /// Makes the program of what was recorded, which gave `outputs`. Of `arguments` inputs it can
  /// take others in each run, and keeps those behind them.
  Recorded finish(const std::vector<Tensor>& outputs, size_t arguments);
  /// Does the same for what was recorded apart. Leaves out what is not read of the inputs, and
  /// computes gradients of leaves from `first_leaf` on in places as well.
  Recorded finish_apart(const std::vector<Tensor>& outputs, const ParameterCasts& casts,
                        size_t first_leaf, size_t first_cast);

 private:
  /// The nodes of a derivative, and what it gives for each input of forward.
  struct Derivative {
    size_t first_node = 0;
    size_t end_node = 0;
    std::vector<ValueId> results;
    std::vector<ValueId> places;  ///< by input; kAbsent where nothing is written to one
  };

  Recorded refuse(const std::string& reason) {
    Recorded recorded;
    recorded.failure = reason;
    return recorded;
  }
  void take_outputs(const std::vector<Tensor>& outputs);
  void check_read();
  void add_root_gradients();
  /// Records a derivative; `destinations` are as grad_into takes them, for each of `read_`. What
  /// was recorded for backward is freed unless it is needed `again`.
  Derivative differentiate(const std::vector<Tensor>& destinations, bool again);
  /// Memory for the gradients of the leaves from `first` to `end` among the inputs.
  std::vector<Tensor> destinations(size_t first, size_t end) const;
  /// Adds to `saved_` what a derivative reads of values that are made before.
  void add_saved(const Derivative& of);
  /// Has forward keep less where the budget is lower: sets `saved_` and `again_`. The first
  /// `arguments` inputs are not there in any case.
  void keep_within_budget(const Graph& forward, size_t arguments);
  void add_backward(const Derivative& of);
  /// For each input of forward, the values of `backward` that share its memory.
  std::vector<std::vector<ValueId>> views_of_inputs(const Graph& backward) const;
  /// Sets forward, and the derivatives, where there are any. The first `arguments` of its inputs
  /// are neither parameters nor captured; inputs that are not read may be left out.
  Recorded make(Graph forward, std::vector<Derivative> derivatives, size_t arguments,
                bool leaves_out);
  /// The program, and what the passes did.
  Recorded recorded();

  const CompileOptions& options_;
  Recorder recorder_;
  std::shared_ptr<Program> program_ = std::make_shared<Program>();
  std::vector<std::string> log_;
  std::vector<ValueId> outputs_;
  std::vector<Tensor> roots_;
  std::vector<Tensor> root_gradients_;
  std::vector<ValueId> gradients_;  ///< of the roots
  std::vector<Tensor> read_;        ///< inputs of forward
  std::vector<ValueId> saved_;      ///< what forward keeps for backward
  std::vector<Node> again_;         ///< what backward calls again of forward
};

}  // namespace lockstep::compiler
