#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compile/guard.h"
#include "compile/options.h"
#include "compile/program.h"
#include "core/base/mutex.h"

namespace lockstep::compiler {

/// The programs of one function, one for each kind of call, and what became of its calls.
/// Thread-safe where calls of the function are.
class ProgramCache {
 public:
  /// Throws Error for options that make no sense.
  explicit ProgramCache(CompileOptions options);

  /// Returns what `body` does, from a program where there is one for such a call. The body's
  /// tensors besides `call.inputs` are kept with the program.
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
  /// A kind of call, with its program, or without one if it cannot be recorded.
  struct Entry {
    Guard guard;
    std::shared_ptr<const Program> program;
  };
  struct Choice {
    std::shared_ptr<const Program> program;  ///< to be run, if any
    bool records = false;                    ///< the call is to be recorded
  };

  Choice choose(const CompiledArguments& call);
  void request_kernels(const Program::Recorded& recorded) const;
  void add(const CompiledArguments& call, const Program::Recorded& recorded);
  std::vector<const LoopGroup*> groups() const LS_REQUIRES(mutex_);
  const Entry* find(const CompiledArguments& call) LS_REQUIRES(mutex_);
  void note(const std::string& reason) LS_REQUIRES(mutex_);

  const CompileOptions options_;
  mutable Mutex mutex_;
  std::vector<Entry> entries_ LS_GUARDED_BY(mutex_);
  std::vector<std::string> reasons_ LS_GUARDED_BY(mutex_);
  CompileCounts counts_ LS_GUARDED_BY(mutex_);
};

}  // namespace lockstep::compiler
