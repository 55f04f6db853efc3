#include "compile/program_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/base/check.h"
#include "core/base/log_text.h"
#include "core/dispatch/mode.h"

namespace lockstep::compiler {

namespace {

bool logs() {
  static const bool on = [] {
    const char* const value = std::getenv("LOCKSTEP_COMPILE_LOG");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return on;
}

/// Why the function itself has to run: somebody watches or changes the calls of this thread, or
/// there is nothing to record; empty if it need not.
std::string_view interception(TensorList inputs) {
  const ActiveModes modes = active_modes();
  if (modes.function != nullptr || modes.dispatch != nullptr) {
    return "a mode looks at the calls of the thread";
  }
  for (const Tensor& tensor : inputs) {
    if (!tensor.defined()) return "an input is undefined";
    if (tensor.key_set().has(Key::kVmap)) return "an input is a batch of vmap";
  }
  return {};
}

}  // namespace

ProgramCache::ProgramCache(CompileOptions options) : options_(std::move(options)) {
  LS_CHECK(options_.most_programs >= 1, Error,
           "[compile] most_programs: expected at least 1, got {}.", options_.most_programs);
}

const ProgramCache::Entry* ProgramCache::find(const CompiledArguments& call) {
  for (const Entry& entry : entries_) {
    if (!entry.guard.holds(call)) continue;
    if (!entry.program || entry.program->captured_are_as_recorded()) return &entry;
  }
  return nullptr;
}

void ProgramCache::note(const std::string& reason) {
  if (std::ranges::find(reasons_, reason) != reasons_.end()) return;
  reasons_.push_back(reason);
  if (logs()) write_log(stderr, fmt::format("compile: {}: {}\n", options_.name, reason));
}

void ProgramCache::count_eager(const std::string& reason) {
  const MutexLock lock(mutex_);
  ++counts_.eager;
  note("eager: " + reason);
}

ProgramCache::Choice ProgramCache::choose(const CompiledArguments& call) {
  if (const std::string_view why = interception(call.inputs); !why.empty()) {
    count_eager(std::string(why));
    return {};
  }
  const MutexLock lock(mutex_);
  if (const Entry* const entry = find(call)) {
    ++(entry->program ? counts_.replayed : counts_.eager);
    return {.program = entry->program};
  }
  if (static_cast<int>(entries_.size()) >= options_.most_programs) {
    note(fmt::format("eager: {} programs are kept already", entries_.size()));
    ++counts_.eager;
    return {};
  }
  ++counts_.recorded;
  if (!entries_.empty()) {
    const std::string why = difference(Guard::of(call), entries_.back().guard);
    note("recorded again: " + (why.empty() ? "a captured tensor has another type" : why));
  }
  return {.records = true};
}

void ProgramCache::request_kernels(const Program::Recorded& recorded) const {
  if (!recorded.program || options_.kernels == KernelBuild::kNever) return;
  recorded.program->request_kernels(options_.kernels == KernelBuild::kAtOnce);
}

void ProgramCache::add(const CompiledArguments& call, const Program::Recorded& recorded) {
  const Program* const program = recorded.program.get();
  const MutexLock lock(mutex_);
  entries_.push_back({Guard::of(call), recorded.program});
  if (program == nullptr) {
    --counts_.recorded;
    ++counts_.eager;
    note("eager: " + recorded.failure);
  } else if (logs()) {
    const size_t backward = program->backward() != nullptr ? program->backward()->nodes.size() : 0;
    write_log(stderr, fmt::format("compile: {}: {} operators forward, {} backward, {} captured\n",
                                  options_.name, program->forward().nodes.size(), backward,
                                  program->captured().size()));
    for (const std::string& line : recorded.log) {
      write_log(stderr, fmt::format("compile: {}:   {}\n", options_.name, line));
    }
  }
}

std::vector<Tensor> ProgramCache::run(const Body& body, const CompiledArguments& call) {
  const Choice choice = choose(call);
  if (choice.program) return choice.program->run(call.inputs);
  if (!choice.records) return body(call.inputs);
  Program::Recorded recorded = Program::record(body, call.inputs, options_.passes);
  request_kernels(recorded);
  add(call, recorded);
  return std::move(recorded.outputs);
}

std::vector<Tensor> ProgramCache::run_alike(const Body& body, const CompiledArguments& call) {
  const Choice choice = choose(call);
  if (choice.program) return choice.program->run(call.inputs, call.parameters);
  if (!choice.records) return body(call.inputs);
  Program::Recorded recorded;
  try {
    recorded = Program::record_apart(body, call.inputs, call.parameters, options_.passes);
  } catch (const Error& error) {  // one of the body comes again
    recorded.failure = error.what();
  }
  request_kernels(recorded);
  add(call, recorded);
  return recorded.program ? recorded.program->run(call.inputs, call.parameters) : body(call.inputs);
}

CompileCounts ProgramCache::counts() const {
  const MutexLock lock(mutex_);
  CompileCounts counts = counts_;
  for (const LoopGroup* const group : groups()) counts.kernels += group->runs_kernel() ? 1 : 0;
  return counts;
}

std::vector<std::string> ProgramCache::reasons() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> reasons = reasons_;
  for (const LoopGroup* const group : groups()) {
    const std::string why = group->refusal();
    if (why.empty()) continue;
    std::string reason = "loops instead of a kernel: " + why;
    if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(std::move(reason));
  }
  return reasons;
}

std::vector<const LoopGroup*> ProgramCache::groups() const {
  std::vector<const LoopGroup*> all;
  for (const Entry& entry : entries_) {
    if (!entry.program) continue;
    const std::vector<const LoopGroup*> of_one = entry.program->groups();
    all.insert(all.end(), of_one.begin(), of_one.end());
  }
  return all;
}

std::vector<std::shared_ptr<const Program>> ProgramCache::programs() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const Program>> programs;
  for (const Entry& entry : entries_) {
    if (entry.program) programs.push_back(entry.program);
  }
  return programs;
}

}  // namespace lockstep::compiler
