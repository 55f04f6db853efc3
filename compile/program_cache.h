#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compile/guard.h"
#include "compile/options.h"
#include "compile/program.h"
#include "compile/split_program.h"
#include "compile/symbolic_program.h"
#include "core/base/mutex.h"

namespace lockstep::compiler {

/// The programs of one function, one for each kind of call, and what became of its calls.
/// Thread-safe where calls of the function are.
class ProgramCache {
 public:
  /// Throws Error for options that make no sense.
  explicit ProgramCache(CompileOptions options);

  /// Returns what `body` does, from a program where there is one for such a call. The body's
  /// tensors besides `call.inputs` are kept with the program. Where the body reads values on the
  /// host, there is one program for each way that these send it.
  std::vector<Tensor> run(const Body& body, const CompiledArguments& call);
  /// Does the same for bodies that differ in `call.parameters` alone, and read nothing else: a
  /// program that was recorded of one serves all. It is recorded apart (Program::record_apart).
  std::vector<Tensor> run_alike(const Body& body, const CompiledArguments& call);
  /// Counts a call that runs without a program, and tells why, unless that was told before.
  void count_eager(const std::string& reason);

  CompileCounts counts() const;
  std::vector<std::string> reasons() const;
  std::vector<std::shared_ptr<const Program>> programs() const;

 private:
  /// A kind of call, with its program, or its programs where it reads values on the host; without
  /// one if it cannot be recorded.
  struct Entry {
    Guard guard;
    std::shared_ptr<const Program> program = nullptr;
    std::shared_ptr<const SplitProgram> split = nullptr;
    int refused = 0;  ///< ways through `split` that cannot be recorded
    int misses = 0;   ///< calls in a row that read values that no way of `split` was recorded for
    /// For sizes that vary; `guard` and `program` are those of one of its samples.
    std::shared_ptr<SymbolicProgram> symbolic = nullptr;

    bool runs_eagerly() const { return program == nullptr && split == nullptr; }
    bool captured_are_as_recorded() const;
    bool may_change_captured(TensorList inputs) const;
    int count() const;
    /// The program, or those for the sizes that are kept; not the ways of `split`.
    std::vector<std::shared_ptr<const Program>> programs() const;
  };
  struct Choice {
    std::shared_ptr<const Program> program = nullptr;     ///< to be run, if any
    std::shared_ptr<const SplitProgram> split = nullptr;  ///< to be run, if any
    bool records = false;                                 ///< the call is to be recorded
  };

  Choice choose(const CompiledArguments& call);
  /// Counts a call that `split` ran, or did not because of `miss`, and returns whether it is to be
  /// recorded.
  bool take_outcome(const std::shared_ptr<const SplitProgram>& split, const std::string& miss);
  /// Whether one more program may be kept; says if not.
  bool has_room() LS_REQUIRES(mutex_);
  Entry* entry_of(const std::shared_ptr<const SplitProgram>& split) LS_REQUIRES(mutex_);
  /// Does what is to be done before a program's first run: kernels, recorded calls, CUDA graphs.
  void make_ready(Program& program, const CompiledArguments& call) const;
  void add_capture_refusals(std::vector<std::string>& reasons) const LS_REQUIRES(mutex_);
  void add(const CompiledArguments& call, const Program::Recorded& recorded);
  /// Adds one way through a function whose other ways are those of `before`, null for the first.
  void add_way(const CompiledArguments& call, Program::Recorded recorded,
               const std::shared_ptr<const SplitProgram>& before);
  void log_program(const Program::Recorded& recorded) const;
  std::vector<const GroupKernel*> kernels() const LS_REQUIRES(mutex_);
  /// The entry for the call, and the program to run.
  std::pair<const Entry*, std::shared_ptr<const Program>> find(const CompiledArguments& call)
      LS_REQUIRES(mutex_);
  /// Makes one program of the last entry and of those that differ from it in sizes, where they
  /// allow it; says what became of it.
  void join_sizes() LS_REQUIRES(mutex_);
  bool join_sizes(const std::vector<Entry*>& alike) LS_REQUIRES(mutex_);
  void note(const std::string& reason) LS_REQUIRES(mutex_);

  const CompileOptions options_;
  mutable Mutex mutex_;
  std::vector<Entry> entries_ LS_GUARDED_BY(mutex_);
  std::vector<std::string> reasons_ LS_GUARDED_BY(mutex_);
  CompileCounts counts_ LS_GUARDED_BY(mutex_);
};

}  // namespace lockstep::compiler
