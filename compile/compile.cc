#include "compile/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "compile/guard.h"
#include "core/base/check.h"
#include "core/base/log_text.h"
#include "core/base/mutex.h"
#include "core/dispatch/mode.h"
#include "core/dispatch/observer.h"

namespace lockstep {

using compiler::Guard;
using compiler::Program;

namespace {

bool logs() {
  static const bool on = [] {
    const char* const value = std::getenv("LOCKSTEP_COMPILE_LOG");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return on;
}

/// Whether somebody watches or changes the calls of this thread: they have to see the function's.
bool is_intercepted(TensorList inputs) {
  const ActiveModes modes = active_modes();
  if (modes.function != nullptr || modes.dispatch != nullptr) return true;
  return std::ranges::any_of(inputs, [](const Tensor& tensor) {
    return tensor.defined() && tensor.key_set().has(Key::kVmap);
  });
}

}  // namespace

struct CompiledFunction::State {
  /// A kind of call, with its program, or without one if it cannot be recorded.
  struct Entry {
    Guard guard;
    std::shared_ptr<const Program> program;
  };

  compiler::Body body;
  CompileOptions options;
  Mutex mutex;
  std::vector<Entry> entries LS_GUARDED_BY(mutex);
  std::vector<std::string> reasons LS_GUARDED_BY(mutex);
  CompileCounts counts LS_GUARDED_BY(mutex);

  const Entry* find(const Guard& guard) LS_REQUIRES(mutex) {
    for (const Entry& entry : entries) {
      if (entry.guard != guard) continue;
      if (!entry.program || entry.program->captured_are_as_recorded()) return &entry;
    }
    return nullptr;
  }
  void note(const std::string& reason) LS_REQUIRES(mutex) {
    if (std::ranges::find(reasons, reason) != reasons.end()) return;
    reasons.push_back(reason);
    if (logs()) write_log(stderr, fmt::format("compile: {}: {}\n", options.name, reason));
  }
};

CompiledFunction::CompiledFunction(compiler::Body body, CompileOptions options)
    : state_(std::make_shared<State>()) {
  LS_CHECK(body != nullptr, Error, "[compile] the function is empty.");
  LS_CHECK(options.most_programs >= 1, Error,
           "[compile] most_programs: expected at least 1, got {}.", options.most_programs);
  state_->body = std::move(body);
  state_->options = std::move(options);
}

std::vector<Tensor> CompiledFunction::operator()(TensorList inputs) const {
  State& state = *state_;
  const Guard guard = Guard::of(inputs);
  bool eager = is_intercepted(inputs) ||
               std::ranges::any_of(inputs, [](const Tensor& tensor) { return !tensor.defined(); });
  std::shared_ptr<const Program> program;
  {
    const MutexLock lock(state.mutex);
    const State::Entry* const entry = eager ? nullptr : state.find(guard);
    if (entry != nullptr) {
      program = entry->program;
      eager = !program;
    } else if (!eager && static_cast<int>(state.entries.size()) >= state.options.most_programs) {
      state.note(fmt::format("eager: {} programs are kept already", state.entries.size()));
      eager = true;
    }
    ++(program ? state.counts.replayed : eager ? state.counts.eager : state.counts.recorded);
    if (!program && !eager && !state.entries.empty()) {
      const std::string why = difference(guard, state.entries.back().guard);
      state.note("recorded again: " + (why.empty() ? "a captured tensor has another type" : why));
    }
  }
  if (program) return program->run(inputs);
  if (eager) return state.body(inputs);
  Program::Recorded recorded = Program::record(state.body, inputs, state.options.passes);
  const MutexLock lock(state.mutex);
  state.entries.push_back({guard, recorded.program});
  if (!recorded.program) {
    --state.counts.recorded;
    ++state.counts.eager;
    state.note("eager: " + recorded.failure);
  } else if (logs()) {
    write_log(stderr, fmt::format("compile: {}: {} operators forward, {} backward, {} captured\n",
                                  state.options.name, recorded.program->forward().nodes.size(),
                                  recorded.program->backward() != nullptr
                                      ? recorded.program->backward()->nodes.size()
                                      : 0,
                                  recorded.program->captured().size()));
    for (const std::string& line : recorded.log) {
      write_log(stderr, fmt::format("compile: {}:   {}\n", state.options.name, line));
    }
  }
  return std::move(recorded.outputs);
}

CompileCounts CompiledFunction::counts() const {
  const MutexLock lock(state_->mutex);
  return state_->counts;
}

std::vector<std::string> CompiledFunction::reasons() const {
  const MutexLock lock(state_->mutex);
  return state_->reasons;
}

std::vector<std::shared_ptr<const Program>> CompiledFunction::programs() const {
  const MutexLock lock(state_->mutex);
  std::vector<std::shared_ptr<const Program>> programs;
  for (const State::Entry& entry : state_->entries) {
    if (entry.program) programs.push_back(entry.program);
  }
  return programs;
}

}  // namespace lockstep
