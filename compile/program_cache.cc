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
  LS_CHECK(options_.activation_budget >= 0 && options_.activation_budget <= 1, Error,
           "[compile] activation_budget: expected 0 to 1, got {}.", options_.activation_budget);
}

bool ProgramCache::Entry::captured_are_as_recorded() const {
  return (!program || program->captured_are_as_recorded()) &&
         (!split || split->captured_are_as_recorded());
}

bool ProgramCache::Entry::may_change_captured(TensorList inputs) const {
  return (program && program->may_change_captured(inputs)) ||
         (split && split->may_change_captured(inputs));
}

int ProgramCache::Entry::count() const {
  if (symbolic) return static_cast<int>(symbolic->samples().size());
  return split ? static_cast<int>(split->ways().size()) + refused : 1;
}

std::vector<std::shared_ptr<const Program>> ProgramCache::Entry::programs() const {
  if (symbolic) return symbolic->programs();
  return program ? std::vector{program} : std::vector<std::shared_ptr<const Program>>();
}

std::pair<const ProgramCache::Entry*, std::shared_ptr<const Program>> ProgramCache::find(
    const CompiledArguments& call) {
  for (const Entry& entry : entries_) {
    if (entry.symbolic) {
      const auto make = [&](Program& resized) { make_ready(resized, call); };
      if (auto program = entry.symbolic->find(call, make);
          program && program->captured_are_as_recorded()) {
        return {&entry, std::move(program)};
      }
    } else if (entry.guard.holds(call) && entry.captured_are_as_recorded()) {
      return {&entry, entry.program};
    }
  }
  return {};
}

void ProgramCache::join_sizes() {
  if (!options_.symbolic_sizes || !entries_.back().program) return;
  std::vector<Entry*> alike;
  for (Entry& entry : entries_) {
    if (entry.program && entry.captured_are_as_recorded() &&
        SymbolicProgram::differ_in_sizes(entry.guard, entries_.back().guard)) {
      alike.push_back(&entry);
    }
  }
  if (alike.empty() || join_sizes(alike)) return;
  // Where two sizes are equal in some calls, other operators run together there.
  const Guard& latest = entries_.back().guard;
  const size_t all = std::erase_if(alike, [&](const Entry* entry) {
    return !SymbolicProgram::have_same_equal_sizes(entry->guard, latest);
  });
  if (all != 0 && !alike.empty()) (void)join_sizes(alike);
}

bool ProgramCache::join_sizes(const std::vector<Entry*>& alike) {
  std::vector<SymbolicProgram::Sample> samples;
  for (const Entry* const entry : alike) {
    if (entry->symbolic) {
      std::ranges::copy(entry->symbolic->samples(), std::back_inserter(samples));
    } else {
      samples.push_back({entry->guard, entry->program});
    }
  }
  samples.push_back({entries_.back().guard, entries_.back().program});
  SymbolicProgram::Made made = SymbolicProgram::make(std::move(samples));
  if (!made.program) {
    note("sizes stay exact: " + made.refusal);
    return false;
  }
  note("one program for sizes: " + made.program->description());
  entries_.back().symbolic = std::move(made.program);
  std::vector<Entry> left;
  for (Entry& entry : entries_) {
    if (std::ranges::find(alike, &entry) == alike.end()) left.push_back(std::move(entry));
  }
  entries_ = std::move(left);
  return true;
}

ProgramCache::Entry* ProgramCache::entry_of(const std::shared_ptr<const SplitProgram>& split) {
  const auto found =
      std::ranges::find_if(entries_, [&](const Entry& e) { return e.split == split; });
  return found == entries_.end() ? nullptr : &*found;
}

bool ProgramCache::has_room() {
  int kept = 0;
  for (const Entry& entry : entries_) kept += entry.count();
  if (kept < options_.most_programs) return true;
  note(fmt::format("eager: {} programs are kept already", kept));
  return false;
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
  if (auto [entry, program] = find(call); entry != nullptr) {
    if (entry->may_change_captured(call.inputs)) {
      ++counts_.eager;
      note("eager: an input shares memory with a kept tensor, and one of the two may be changed");
      return {};
    }
    if (!entry->split) ++(entry->runs_eagerly() ? counts_.eager : counts_.replayed);
    return {.program = std::move(program), .split = entry->split};
  }
  if (!has_room()) {
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

bool ProgramCache::take_outcome(const std::shared_ptr<const SplitProgram>& split,
                                const std::string& miss) {
  const MutexLock lock(mutex_);
  Entry* const entry = entry_of(split);  // another thread may have replaced it
  if (miss.empty()) {
    if (entry != nullptr) entry->misses = 0;
    ++counts_.replayed;
    return false;
  }
  if (entry != nullptr && ++entry->misses >= options_.most_programs) {
    note(fmt::format("eager: {} calls in a row read values that no program was recorded for",
                     entry->misses));
    entry->split = nullptr;
  } else if (has_room()) {
    ++counts_.recorded;
    note("recorded again: " + miss);
    return true;
  }
  ++counts_.eager;
  return false;
}

void ProgramCache::make_ready(Program& program, const CompiledArguments& call) const {
  if (options_.kernels != KernelBuild::kNever) {
    program.request_kernels(options_.kernels == KernelBuild::kAtOnce);
  }
  if (!call.parameters.empty()) return;  // layers of other parameters take turns
  program.prepare_small_graphs();
  if (options_.cuda_graphs) program.enable_cuda_graphs();
}

void ProgramCache::add(const CompiledArguments& call, const Program::Recorded& recorded) {
  const Program* const program = recorded.program.get();
  const MutexLock lock(mutex_);
  entries_.push_back({Guard::of(call), recorded.program});
  if (program == nullptr) {
    --counts_.recorded;
    ++counts_.eager;
    note("eager: " + recorded.failure);
  } else {
    log_program(recorded);
    join_sizes();
  }
}

void ProgramCache::log_program(const Program::Recorded& recorded) const {
  if (!logs()) return;
  const Program& program = *recorded.program;
  const size_t backward = program.backward() != nullptr ? program.backward()->nodes.size() : 0;
  write_log(stderr, fmt::format("compile: {}: {} operators forward, {} backward, {} captured\n",
                                options_.name, program.forward().nodes.size(), backward,
                                program.captured().size()));
  if (program.path() != nullptr) {
    for (const HostRead& read : program.path()->reads) {
      write_log(stderr, fmt::format("compile: {}:   split behind {} of them: {}\n", options_.name,
                                    read.end, description(read, read.values)));
    }
  }
  for (const std::string& line : recorded.log) {
    write_log(stderr, fmt::format("compile: {}:   {}\n", options_.name, line));
  }
}

void ProgramCache::add_way(const CompiledArguments& call, Program::Recorded recorded,
                           const std::shared_ptr<const SplitProgram>& before) {
  std::shared_ptr<SplitProgram> split;
  if (recorded.program && recorded.program->path() == nullptr) {
    recorded.failure = "it reads values on the host in some calls only";
  } else if (recorded.program) {
    std::vector<std::shared_ptr<const Program>> ways;
    if (before) ways = before->ways();
    ways.push_back(recorded.program);
    split = SplitProgram::make(std::move(ways), options_.passes, before.get(), &recorded.log);
    if (!split) recorded.failure = "it computes other things before it reads other values";
  }
  if (split && options_.kernels != KernelBuild::kNever) {
    split->request_kernels(options_.kernels == KernelBuild::kAtOnce);
  }
  const MutexLock lock(mutex_);
  Entry* const entry = before ? entry_of(before) : nullptr;
  if (!split) {
    --counts_.recorded;
    ++counts_.eager;
    note("eager: " + recorded.failure);
    if (entry != nullptr) ++entry->refused;
    return;
  }
  if (entry != nullptr) {
    entry->split = std::move(split);
  } else if (before == nullptr) {
    entries_.push_back({.guard = Guard::of(call), .split = std::move(split)});
  } else {
    return;  // another thread has added a way meanwhile, and this one is recorded when it is missed
  }
  log_program(recorded);
}

std::vector<Tensor> ProgramCache::run(const Body& body, const CompiledArguments& call) {
  const Choice choice = choose(call);
  if (choice.program) return choice.program->run(call.inputs);
  bool records = choice.records;
  if (choice.split) {
    std::string miss;
    std::optional<std::vector<Tensor>> outputs = choice.split->run(call.inputs, miss);
    records = take_outcome(choice.split, miss);
    if (outputs) return std::move(*outputs);
  }
  if (!records) return body(call.inputs);
  Program::Recorded recorded = Program::record(body, call.inputs, options_);
  std::vector<Tensor> outputs = std::move(recorded.outputs);
  if (recorded.program) make_ready(*recorded.program, call);
  if (choice.split || (recorded.program && recorded.program->path() != nullptr)) {
    add_way(call, std::move(recorded), choice.split);
  } else {
    add(call, recorded);
  }
  return outputs;
}

std::vector<Tensor> ProgramCache::run_alike(const Body& body, const CompiledArguments& call) {
  const Choice choice = choose(call);
  if (choice.program) return choice.program->run(call.inputs, call.parameters);
  if (!choice.records) return body(call.inputs);
  Program::Recorded recorded;
  try {
    recorded = Program::record_apart(body, call.inputs, call.parameters, options_);
  } catch (const Error& error) {  // one of the body comes again
    recorded.failure = error.what();
  }
  if (recorded.program) make_ready(*recorded.program, call);
  add(call, recorded);
  return recorded.program ? recorded.program->run(call.inputs, call.parameters) : body(call.inputs);
}

CompileCounts ProgramCache::counts() const {
  const MutexLock lock(mutex_);
  CompileCounts counts = counts_;
  for (const GroupKernel* const kernel : kernels()) counts.kernels += kernel->runs() ? 1 : 0;
  return counts;
}

std::vector<std::string> ProgramCache::reasons() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> reasons = reasons_;
  for (const GroupKernel* const kernel : kernels()) {
    const std::string why = kernel->refusal();
    if (why.empty()) continue;
    std::string reason = "loops instead of a kernel: " + why;
    if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(std::move(reason));
  }
  add_capture_refusals(reasons);
  return reasons;
}

void ProgramCache::add_capture_refusals(std::vector<std::string>& reasons) const {
  for (const Entry& entry : entries_) {
    for (const std::shared_ptr<const Program>& program : entry.programs()) {
      for (const std::string& why : program->capture_refusals()) {
        const std::string reason = "no CUDA graph of " + why;
        if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(reason);
      }
    }
  }
}

std::vector<const GroupKernel*> ProgramCache::kernels() const {
  std::vector<const GroupKernel*> all;
  for (const Entry& entry : entries_) {
    if (entry.program) std::ranges::copy(entry.program->kernels(), std::back_inserter(all));
    if (entry.split) std::ranges::copy(entry.split->kernels(), std::back_inserter(all));
  }
  return all;
}

std::vector<std::shared_ptr<const Program>> ProgramCache::programs() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const Program>> programs;
  for (const Entry& entry : entries_) {
    std::ranges::copy(entry.programs(), std::back_inserter(programs));
    if (entry.split) std::ranges::copy(entry.split->ways(), std::back_inserter(programs));
  }
  return programs;
}

}  // namespace lockstep::compiler
