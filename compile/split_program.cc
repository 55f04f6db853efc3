#include "compile/split_program.h"

#include <algorithm>
#include <set>

#include "compile/native/kernel_builder.h"
#include "compile/passes.h"
#include "core/tensor/generator.h"

namespace lockstep::compiler {

namespace {

/// Where a part finds a tensor.
struct Source {
  enum class From : uint8_t { kNowhere, kArgument, kCaptured, kPart };  ///< kPart: the one before
  From from = From::kNowhere;                                           ///< an undefined tensor
  size_t index = 0;
};

/// Calls visit(id) for each value that a way needs from read `at` on: what it reads there, what
/// nodes read behind it, and what it returns and writes.
template <class Visit>
void each_needed_from(const Path& path, size_t at, Visit&& visit) {
  for (size_t i = at; i < path.reads.size(); ++i) {
    for (const NodeArgument& argument : path.reads[i].arguments) {
      std::ranges::for_each(argument.values, visit);
    }
  }
  for (size_t n = path.reads[at].end; n < path.graph.nodes.size(); ++n) {
    each_read(path.graph.nodes[n], visit);
  }
  std::ranges::for_each(path.graph.outputs, visit);
  for (const Graph::Write& write : path.graph.writes) visit(write.value);
}

}  // namespace

struct SplitProgram::Part {
  struct Branch {
    std::vector<Value> values;
    std::unique_ptr<Part> part;
  };

  Graph recorded;  ///< before the passes
  std::shared_ptr<Interpreter> graph;
  bool is_new = true;  ///< the graph was made for this program
  std::vector<Source> inputs;
  std::vector<Tensor> captured;
  const HostRead* read = nullptr;  ///< behind the graph; null at the end of a way
  std::vector<Source> read_tensors;
  std::vector<Branch> branches;        ///< by what is read
  std::shared_ptr<const Program> way;  ///< that ends here

  /// The index of the branch for what was read; the number of branches if there is none.
  size_t branch_for(const std::vector<Value>& got) const {
    const auto found = std::ranges::find_if(
        branches, [&](const Branch& each) { return same_constants(each.values, got); });
    return static_cast<size_t>(found - branches.begin());
  }

  std::vector<Tensor> gather(const std::vector<Source>& sources, TensorList arguments,
                             const std::vector<Tensor>& results) const {
    std::vector<Tensor> tensors;
    tensors.reserve(sources.size());
    for (const Source& source : sources) {
      tensors.push_back(find(source, arguments, results));
    }
    return tensors;
  }

 private:
  Tensor find(const Source& source, TensorList arguments,
              const std::vector<Tensor>& results) const {
    switch (source.from) {
      case Source::From::kNowhere:
        return {};
      case Source::From::kArgument:
        return arguments[source.index];
      case Source::From::kCaptured:
        return captured[source.index];
      case Source::From::kPart:
        return results[source.index];
    }
    return {};
  }
};

namespace {

/// Calls visit(part) for a part and all behind it.
template <class P, class Visit>
void each_part(P& part, Visit&& visit) {
  visit(part);
  for (auto& branch : part.branches) each_part(*branch.part, visit);
}

}  // namespace

class SplitProgram::Maker {
 public:
  Maker(const std::vector<Pass>& passes, const SplitProgram* before, std::vector<std::string>* log)
      : passes_(passes), log_(log) {
    if (before != nullptr) {
      each_part(*before->first_, [&](const Part& part) { made_.push_back(&part); });
    }
  }

  using Ways = std::vector<std::shared_ptr<const Program>>;

  /// The part that begins behind read `depth` - 1 of the ways, which agree so far; `results` are
  /// the values that the part before gives. Null where the ways do not fit together.
  std::unique_ptr<Part> part(const Ways& ways, size_t depth, const std::vector<ValueId>& results) {
    const Path& path = *ways[0]->path();
    const bool is_end = depth == path.reads.size();
    if (is_end && ways.size() > 1) return nullptr;
    const size_t first = depth == 0 ? 0 : path.reads[depth - 1].end;
    const size_t end = is_end ? path.graph.nodes.size() : path.reads[depth].end;
    for (const auto& way : ways) {
      if (!agrees(path, *way->path(), depth, first, end)) return nullptr;
    }
    auto part = std::make_unique<Part>();
    cut(*part, ways, depth, first, end);
    find_inputs(*part, *ways[0], results);
    make_graph(*part);
    if (is_end) {
      part->way = ways[0];
      return part;
    }
    part->read = &path.reads[depth];
    for (const NodeArgument& argument : part->read->arguments) {
      for (const ValueId id : argument.values) {
        part->read_tensors.push_back(source(*part, *ways[0], id, part->recorded.outputs));
      }
    }
    return add_branches(*part, ways, depth) ? std::move(part) : nullptr;
  }

 private:
  /// Whether both ways call the same operators from node `first` to `end`, and then read the same.
  static bool agrees(const Path& a, const Path& b, size_t depth, size_t first, size_t end) {
    if ((depth == a.reads.size()) != (depth == b.reads.size()) || b.graph.nodes.size() < end) {
      return false;
    }
    for (size_t n = first; n < end; ++n) {
      const Node& node = a.graph.nodes[n];
      if (!same_call(node, b.graph.nodes[n])) return false;
      if (node.op->kind() == OpKind::kDynamic) continue;  // the sizes of its results are read
      for (const ValueId id : node.results) {
        if (id != kAbsent && type_of(a.graph, id) != type_of(b.graph, id)) return false;
      }
    }
    if (depth == a.reads.size()) return true;
    const HostRead& mine = a.reads[depth];
    const HostRead& other = b.reads[depth];
    return mine.end == other.end && mine.of_sizes == other.of_sizes &&
           same_call({mine.op, mine.arguments, {}}, {other.op, other.arguments, {}});
  }

  /// Fills the part's recorded graph, but for its inputs.
  static void cut(Part& part, const Ways& ways, size_t depth, size_t first, size_t end) {
    const Path& path = *ways[0]->path();
    part.recorded.values = path.graph.values;
    part.recorded.nodes.assign(path.graph.nodes.begin() + static_cast<std::ptrdiff_t>(first),
                               path.graph.nodes.begin() + static_cast<std::ptrdiff_t>(end));
    if (depth == path.reads.size()) {
      part.recorded.outputs = path.graph.outputs;
      part.recorded.writes = path.graph.writes;
      return;
    }
    std::set<ValueId> made;
    for (size_t n = 0; n < end; ++n) {
      made.insert(path.graph.nodes[n].results.begin(), path.graph.nodes[n].results.end());
    }
    made.erase(kAbsent);
    std::set<ValueId> needed;
    for (const auto& way : ways) {
      each_needed_from(*way->path(), depth, [&](ValueId id) {
        if (made.contains(id)) needed.insert(id);
      });
    }
    part.recorded.outputs.assign(needed.begin(), needed.end());
    // Other ways number what follows otherwise.
    part.recorded.values.resize(static_cast<size_t>(last_value(path, end)) + 1);
  }

  /// The largest number of a value that is there before node `end`.
  static ValueId last_value(const Path& path, size_t end) {
    ValueId last = kAbsent;
    const auto see = [&](ValueId id) { last = std::max(last, id); };
    for (size_t n = 0; n < end; ++n) {
      each_read(path.graph.nodes[n], see);
      std::ranges::for_each(path.graph.nodes[n].results, see);
    }
    for (size_t i = 0; i < path.arguments; ++i) see(path.graph.inputs[i]);
    return last;
  }

  /// Where the part finds a value that it does not make.
  static Source source(Part& part, const Program& way, ValueId id,
                       const std::vector<ValueId>& results) {
    if (id == kAbsent) return {};
    const Path& path = *way.path();
    if (const auto at = std::ranges::find(results, id); at != results.end()) {
      return {Source::From::kPart, static_cast<size_t>(at - results.begin())};
    }
    const auto at = std::ranges::find(path.graph.inputs, id);
    const auto index = static_cast<size_t>(at - path.graph.inputs.begin());
    if (index < path.arguments) return {Source::From::kArgument, index};
    part.captured.push_back(way.captured().at(index - path.arguments));
    return {Source::From::kCaptured, part.captured.size() - 1};
  }

  static void find_inputs(Part& part, const Program& way, const std::vector<ValueId>& results) {
    std::set<ValueId> known;
    const auto read = [&](ValueId id) {
      if (id == kAbsent || !known.insert(id).second) return;
      part.recorded.inputs.push_back(id);
      part.inputs.push_back(source(part, way, id, results));
    };
    for (const Node& node : part.recorded.nodes) {
      each_read(node, read);
      known.insert(node.results.begin(), node.results.end());
    }
    std::ranges::for_each(part.recorded.outputs, read);
    for (const Graph::Write& write : part.recorded.writes) read(write.value), read(write.input);
  }

  void make_graph(Part& part) {
    for (const Part* const known : made_) {
      if (!same_graph(known->recorded, part.recorded)) continue;
      part.graph = known->graph;
      part.is_new = false;
      return;
    }
    part.graph = std::make_shared<Interpreter>(run_passes(part.recorded, passes_, log_));
  }

  /// Adds what follows the part's read, by what the ways read there.
  bool add_branches(Part& part, const Ways& ways, size_t depth) {
    std::vector<Ways> by_values;
    for (const auto& way : ways) {
      const std::vector<Value>& values = way->path()->reads[depth].values;
      const size_t at = part.branch_for(values);
      if (at == part.branches.size()) {
        part.branches.push_back({values, nullptr});
        by_values.emplace_back();
      }
      by_values[at].push_back(way);
    }
    for (size_t i = 0; i < by_values.size(); ++i) {
      part.branches[i].part = this->part(by_values[i], depth + 1, part.recorded.outputs);
      if (!part.branches[i].part) return false;
    }
    return true;
  }

  const std::vector<Pass>& passes_;
  std::vector<std::string>* log_;
  std::vector<const Part*> made_;
};

SplitProgram::SplitProgram() = default;
SplitProgram::~SplitProgram() = default;

std::shared_ptr<SplitProgram> SplitProgram::make(std::vector<std::shared_ptr<const Program>> ways,
                                                 const std::vector<Pass>& passes,
                                                 const SplitProgram* before,
                                                 std::vector<std::string>* log) {
  std::shared_ptr<SplitProgram> program(new SplitProgram());
  program->first_ = Maker(passes, before, log).part(ways, 0, {});
  if (!program->first_) return nullptr;
  program->ways_ = std::move(ways);
  return program;
}

void SplitProgram::request_kernels(bool waits) {
  each_part(*first_, [&](Part& part) {
    if (!part.is_new) return;
    part.graph->request_kernels();
    for (const GroupKernel* const kernel : part.graph->kernels()) {
      if (waits && kernel->pending() != nullptr) kernel->pending()->wait();
    }
  });
}

std::vector<const GroupKernel*> SplitProgram::kernels() const {
  std::vector<const GroupKernel*> all;
  each_part(std::as_const(*first_), [&](const Part& part) {
    std::ranges::copy(part.graph->kernels(), std::back_inserter(all));
  });
  for (const auto& way : ways_) std::ranges::copy(way->kernels(), std::back_inserter(all));
  return all;
}

bool SplitProgram::captured_are_as_recorded() const {
  return std::ranges::all_of(ways_, [](const auto& w) { return w->captured_are_as_recorded(); });
}

bool SplitProgram::may_change_captured(TensorList inputs) const {
  return std::ranges::any_of(ways_,
                             [&](const auto& way) { return way->may_change_captured(inputs); });
}

std::optional<std::vector<Tensor>> SplitProgram::run(TensorList inputs, std::string& miss) const {
  const RandomKey drawn = default_generator().state();
  std::vector<Tensor> results;
  const Part* part = first_.get();
  for (;;) {
    std::vector<Tensor> taken = part->gather(part->inputs, inputs, results);
    results.clear();  // what the part takes for the last time is freed there
    results = part->graph->run(std::move(taken));
    if (part->way) return part->way->deliver(inputs, std::move(results));
    const std::vector<Value> values =
        part->read->read(part->gather(part->read_tensors, inputs, results));
    const size_t branch = part->branch_for(values);
    if (branch == part->branches.size()) {
      miss = description(*part->read, values);
      for (const Part::Branch& each : part->branches) {
        miss += (&each == part->branches.data() ? ", not " : " or ") + to_string(each.values);
      }
      default_generator().set_state(drawn);
      return std::nullopt;
    }
    part = part->branches[branch].part.get();
  }
}

}  // namespace lockstep::compiler
