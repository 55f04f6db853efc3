#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/host_read.h"
#include "compile/interpreter.h"
#include "compile/options.h"

namespace lockstep::compiler {

class CapturedRun;  // compile/captured_run.h
class PreparedRun;  // compile/prepared_run.h

/// What one call of a function that reads values on the host computed. Its graph is run in parts
/// (compile/split_program.h).
struct Path {
  Graph graph;           ///< before the passes
  size_t arguments = 0;  ///< how many of its inputs are not captured
  std::vector<HostRead> reads;
};

/// A recorded function, with its derivative where it has one. Immutable once made; keeps the
/// tensors that the function read besides its arguments.
class Program : public std::enable_shared_from_this<Program> {
 public:
  Program();
  ~Program();

  /// What a function returned while it was recorded, and the program, or why there is none.
  struct Recorded {
    std::vector<Tensor> outputs;
    std::shared_ptr<Program> program;
    std::string failure;
    std::vector<std::string> log;  ///< what the passes did
  };

  /// Calls `body` and records it; where its results require grad, the derivative as well. The call
  /// has the effects and the results that it has without recording. Where `body` reads values on
  /// the host, the program is one way through it, with a path. Rethrows what `body` throws.
  static Recorded record(const Body& body, TensorList inputs, const CompileOptions& options);
  /// Records `body` as a function of `parameters` too, which it reads besides its inputs, so that
  /// the program can run with others. The call is made for the record alone: it is part of no
  /// recorded computation, draws no numbers that others would have drawn, and returns no outputs. A
  /// body that reads other tensors, changes one, or returns an argument or a view of one has no
  /// such program.
  ///
  /// Where autocast casts a parameter, the program takes what autocast gives each time that it
  /// runs: casts that are kept are not made again. Where a parameter has a destination for its
  /// gradient (set_grad_destination), there is a second derivative that writes there.
  static Recorded record_apart(const Body& body, TensorList inputs, TensorList parameters,
                               const CompileOptions& options);

  /// Has kernels made for the groups of all graphs, and waits for them if asked to. To be called
  /// before the first run.
  void request_kernels(bool waits);
  /// Has small graphs of the cpu run as recorded calls of kernels. To be called before the first
  /// run.
  void prepare_small_graphs();
  /// Whether forward runs so.
  bool is_prepared() const;
  /// Has graphs run as CUDA graphs after a few calls, where they can. To be called before the
  /// first run.
  void enable_cuda_graphs();
  /// Why graphs run without one, "forward: it changes an argument"; empty if they do not.
  std::vector<std::string> capture_refusals() const;
  /// The groups of all graphs.
  std::vector<const GroupKernel*> kernels() const;

  /// Does what `body` did, on other tensors of the same types; the results are part of the recorded
  /// computation where those of `body` were. A second derivative throws AutogradError. Not for
  /// programs with a path.
  std::vector<Tensor> run(TensorList inputs, TensorList parameters = {}) const;
  /// The way through the function that was recorded; null if it reads no values on the host.
  const Path* path() const { return path_ ? &*path_ : nullptr; }
  /// Returns what a call gives whose way this is: `results` are the outputs of the path's graph,
  /// computed from `inputs`.
  std::vector<Tensor> deliver(TensorList inputs, std::vector<Tensor> results) const;

  /// Takes the function's arguments, parameters and casts of these, as far as it reads them, and
  /// then `captured()`. Its outputs are the function's, and what backward needs. That of the path
  /// if there is one.
  const Graph& forward() const { return path_ ? path_->graph : forward_->graph(); }
  /// Null without a derivative. Takes what forward saved, and then a gradient for each output that
  /// carries one; returns one for each input of forward.
  const Graph* backward() const { return backward_ ? &backward_->graph.graph() : nullptr; }
  /// The tensors that the function read besides its arguments.
  const std::vector<Tensor>& captured() const { return captured_; }
  /// Whether the captured tensors have the types that they had when the program was recorded.
  bool captured_are_as_recorded() const;
  /// Whether the function changes a tensor, and an input lies in the memory of a captured one: what
  /// it reads of the one behind the change of the other is not what the program reads.
  bool may_change_captured(TensorList inputs) const;

  /// Why programs for other sizes cannot be one with this for all sizes, whatever their graphs are;
  /// empty if they can.
  std::string difference(const Program& other) const;
  /// The graphs: forward, and the derivatives there are. Not for programs with a path.
  std::vector<const Graph*> graphs() const;
  /// The values of forward that decide the types of a derivative's first inputs.
  struct BackwardSources {
    std::vector<ValueId> saved;    ///< the inputs themselves
    std::vector<ValueId> outputs;  ///< those of which gradients come
    size_t count() const { return saved.size() + outputs.size(); }
  };
  BackwardSources backward_sources() const;
  /// Makes the program for other sizes of these graphs, as many as `graphs()` gives.
  std::shared_ptr<Program> resized(std::vector<Graph> to) const;

 private:
  friend struct CompiledCall;
  class Recording;

  /// A parameter in another dtype, as autocast gives it.
  struct Cast {
    size_t parameter;
    DType dtype;
    friend bool operator==(const Cast&, const Cast&) = default;
  };
  /// A derivative, and the inputs of forward whose gradients it writes to places that it takes
  /// behind the gradients.
  struct Backward {
    Backward(Graph of, const std::vector<ValueId>& ids, std::vector<size_t> inputs,
             const std::vector<std::vector<ValueId>>& not_before);
    Backward(Graph of, const Backward& alike);

    ~Backward();

    Interpreter graph;
    std::vector<size_t> places;
    std::unique_ptr<CapturedRun> captured;  ///< null: it is none
    std::unique_ptr<PreparedRun> prepared;  ///< null: it is none
  };

  /// The inputs of forward.
  std::vector<Tensor> arguments(TensorList inputs, TensorList parameters) const;
  bool differentiates() const;
  /// Does what `deliver` does with `all` inputs of forward; those that `is_kept` denies may be
  /// undefined.
  std::vector<Tensor> deliver_outputs(const std::vector<Tensor>& all,
                                      std::vector<Tensor> results) const;
  /// Whether outputs are derived from the input, or are it.
  bool is_kept(size_t input) const;

  std::optional<Interpreter> forward_;  ///< nothing where there is a path
  std::unique_ptr<CapturedRun> captured_forward_;
  std::unique_ptr<PreparedRun> prepared_forward_;
  std::optional<Path> path_;
  std::optional<Backward> backward_;
  std::optional<Backward> placed_backward_;
  std::vector<Cast> casts_;
  /// Which of inputs, parameters and casts forward takes, in its order; all if it is not set.
  std::optional<std::vector<size_t>> taken_;
  std::vector<Tensor> captured_;
  std::vector<ValueType> captured_types_;
  std::vector<bool> captured_require_grad_;
  /// For each output the input that it is, if it is one.
  std::vector<std::optional<size_t>> same_as_input_;
  std::vector<bool> carries_gradient_;  ///< by output
};

}  // namespace lockstep::compiler
