#include "compile/symbolic_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "compile/graph/memory_plan.h"
#include "compile/host_read.h"
#include "compile/type_inference.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"

namespace lockstep::compiler {

namespace {

/// Programs for so many sizes are kept.
constexpr size_t kMostSizes = 32;
/// More sizes that vary at once would have too many products.
constexpr size_t kMostVarying = 6;

// Calls visit(number) for each number that may depend on sizes, in one order for all that
// are alike, and takes what it changes.

template <class Visit>
void each_number(ValueType& type, Visit& visit) {
  for (int64_t& size : type.sizes) visit(size);
  for (int64_t& stride : type.strides) visit(stride);
}

template <class Visit>
void each_number(Value& constant, Visit& visit) {
  const auto changed = [&](int64_t number) {
    visit(number);
    return number;
  };
  if (constant.tag() == Value::Tag::kInt) {
    constant = Value(changed(constant.to_int()));
  } else if (constant.tag() == Value::Tag::kScalar && constant.to_scalar().kind() == DType::kI64) {
    constant = Value(Scalar(changed(constant.to_scalar().to_int())));
  } else if (constant.tag() == Value::Tag::kOwnedIntList) {
    Dims numbers = to_dims(constant.to_int_list());
    for (int64_t& number : numbers) number = changed(number);
    if (!std::ranges::equal(numbers, constant.to_int_list())) {
      constant = Value(IntList(numbers)).own();
    }
  }
}

/// A graph of a program. Its first `given` inputs have the types of values of forward, and what its
/// nodes make has those that the operators' rules give, so neither depends on terms.
struct Part {
  Graph graph;
  size_t given = 0;
};

template <class Visit>
void each_number(Node& node, Visit& visit) {
  for (NodeArgument& argument : node.arguments) each_number(argument.constant, visit);
}

template <class Visit>
void each_number_of_inputs(Part& part, Visit& visit) {
  for (size_t i = part.given; i < part.graph.inputs.size(); ++i) {
    each_number(part.graph.values[static_cast<size_t>(part.graph.inputs[i])], visit);
  }
}

template <class Visit>
void each_number(Part& part, Visit& visit) {
  each_number_of_inputs(part, visit);
  for (Node& node : part.graph.nodes) each_number(node, visit);
}

template <class Visit>
void each_number(Guard& guard, Visit& visit) {
  for (Guard::Input& input : guard.inputs) each_number(input.type, visit);
}

template <class Of>
std::vector<int64_t> numbers_of(Of of) {
  std::vector<int64_t> numbers;
  const auto note = [&](int64_t number) { numbers.push_back(number); };
  each_number(of, note);
  return numbers;
}

/// Whose number it is, in words.
std::string owner_of(const Guard& /*guard*/, size_t /*at*/) { return "a stride of an argument"; }
std::string owner_of(Part part, size_t at) {
  size_t seen = 0;
  const auto count = [&](int64_t) { ++seen; };
  each_number_of_inputs(part, count);
  if (seen > at) return "an input";
  for (Node& node : part.graph.nodes) {
    each_number(node, count);
    if (seen > at) return node.op->name();
  }
  return "a result";
}

/// The type of the gradient that a derivative is recorded with: ones_like of the output.
ValueType type_of_gradient(ValueType output) {
  const Tensor gradient =
      ones_like(empty_strided_tensor(output.sizes, output.strides, output.dtype, kMeta));
  output.strides = to_dims(gradient.strides());
  return output;
}

/// Gives the inputs of a derivative the types of what they are of forward.
void take_given_types(Part& part, const Graph& forward, const Program::BackwardSources& sources) {
  for (size_t i = 0; i < part.given; ++i) {
    ValueType& type = part.graph.values[static_cast<size_t>(part.graph.inputs[i])];
    type = i < sources.saved.size()
               ? type_of(forward, sources.saved[i])
               : type_of_gradient(type_of(forward, sources.outputs[i - sources.saved.size()]));
  }
}

/// Why types that follow from others are not those that were recorded; empty if they are.
std::string unlike_inferred(const Part& recorded, const Graph& forward,
                            const Program::BackwardSources& sources) {
  Part inferred = recorded;
  take_given_types(inferred, forward, sources);
  try {
    infer_types(inferred.graph);
  } catch (const Error& error) {
    return error.what();
  }
  if (inferred.graph.values == recorded.graph.values) return {};
  for (const Node& node : recorded.graph.nodes) {
    for (const ValueId id : node.results) {
      if (id != kAbsent && type_of(inferred.graph, id) != type_of(recorded.graph, id)) {
        return fmt::format("{} gives {}, where its rule gives {}", node.op->name(),
                           to_string(type_of(recorded.graph, id)),
                           to_string(type_of(inferred.graph, id)));
      }
    }
  }
  return "a gradient has other strides than its output";
}

/// Whether a size of 2 or more became smaller: it broadcasts then.
bool has_become_one(const Graph& before, const Graph& now) {
  for (size_t id = 0; id < before.values.size(); ++id) {
    const Dims& recorded = before.values[id].sizes;
    for (size_t d = 0; d < recorded.size(); ++d) {
      if (recorded[d] >= 2 && now.values[id].sizes[d] < 2) return true;
    }
  }
  return false;
}

/// Whether the constants can only differ in numbers that may depend on sizes.
bool alike(const Value& a, const Value& b) {
  if (a.tag() != b.tag()) return false;
  if (a.tag() == Value::Tag::kInt) return true;
  if (a.tag() == Value::Tag::kOwnedIntList) return a.to_int_list().size() == b.to_int_list().size();
  if (a.tag() == Value::Tag::kScalar && a.to_scalar().kind() == DType::kI64) {
    return b.to_scalar().kind() == DType::kI64;
  }
  return same_constant(a, b);
}

bool have_same_order(const Dims& a, const Dims& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if ((a[i] < a[k]) != (b[i] < b[k])) return false;
    }
  }
  return true;
}

bool alike(const ValueType& a, const ValueType& b) {
  return a.dtype == b.dtype && a.device == b.device && a.sizes.size() == b.sizes.size() &&
         a.strides.size() == b.strides.size();
}

/// In what the graphs differ besides numbers; empty if in nothing.
std::string other_difference(const Graph& a, const Graph& b) {
  const bool same_ends = a.inputs == b.inputs && a.outputs == b.outputs && a.writes == b.writes;
  const auto alike_values = [&](const std::vector<ValueId>& ids) {
    return std::ranges::all_of(
        ids, [&](ValueId id) { return id == kAbsent || alike(type_of(a, id), type_of(b, id)); });
  };
  for (size_t i = 0; i < std::min(a.nodes.size(), b.nodes.size()); ++i) {
    const Node& x = a.nodes[i];
    const Node& y = b.nodes[i];
    if (x.op != y.op) return fmt::format("{} is called instead of {}", y.op->name(), x.op->name());
    if (x.results != y.results || x.arguments.size() != y.arguments.size() ||
        !alike_values(x.results)) {
      return fmt::format("{} is called for something else", x.op->name());
    }
    for (size_t k = 0; k < x.arguments.size(); ++k) {
      const NodeArgument& mine = x.arguments[k];
      const NodeArgument& other = y.arguments[k];
      if (mine.kind != other.kind || mine.values != other.values) {
        return fmt::format("{} is called for other tensors", x.op->name());
      }
      if (!alike(mine.constant, other.constant)) {
        return fmt::format("{} is called with {} and with {}", x.op->name(),
                           mine.constant.to_string(), other.constant.to_string());
      }
    }
    if (x.group != y.group || x.runs_once != y.runs_once) {
      return fmt::format("{} is in another group", x.op->name());
    }
  }
  if (a.nodes.size() != b.nodes.size() || !same_ends || !alike_values(a.inputs)) {
    return "other operators are called";
  }
  return {};
}

}  // namespace

bool SymbolicProgram::differ_in_sizes(const Guard& a, const Guard& b) {
  Guard as_b = a;
  if (a.inputs.size() != b.inputs.size()) return false;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    const ValueType& mine = a.inputs[i].type;
    const ValueType& other = b.inputs[i].type;
    if (mine.sizes.size() != other.sizes.size()) return false;
    for (size_t d = 0; d < mine.sizes.size(); ++d) {
      if (mine.sizes[d] != other.sizes[d] && std::min(mine.sizes[d], other.sizes[d]) < 2) {
        return false;
      }
    }
    if (!have_same_order(mine.strides, other.strides)) return false;
    as_b.inputs[i].type.sizes = other.sizes;
    as_b.inputs[i].type.strides = other.strides;
  }
  return as_b == b && a != b;
}

bool SymbolicProgram::have_same_equal_sizes(const Guard& a, const Guard& b) {
  std::map<int64_t, int64_t> there, back;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    for (size_t d = 0; d < a.inputs[i].type.sizes.size(); ++d) {
      const int64_t mine = a.inputs[i].type.sizes[d];
      const int64_t other = b.inputs[i].type.sizes[d];
      if (there.try_emplace(mine, other).first->second != other ||
          back.try_emplace(other, mine).first->second != mine) {
        return false;
      }
    }
  }
  return true;
}

void SymbolicProgram::find_varying() {
  std::vector<Sizes> seen;  // by size that varies: in each sample
  const std::vector<Guard::Input>& inputs = samples_.back().guard.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t d = 0; d < inputs[i].type.sizes.size(); ++d) {
      Sizes sizes;
      for (const Sample& sample : samples_) sizes.push_back(sample.guard.inputs[i].type.sizes[d]);
      if (std::ranges::count(sizes, sizes[0]) == std::ssize(sizes)) continue;
      if (std::ranges::find(seen, sizes) != seen.end()) continue;
      int64_t step = 0;
      for (const int64_t size : sizes) step = std::gcd(step, size);
      seen.push_back(std::move(sizes));
      varying_.push_back({i, d, step});
    }
  }
}

template <class SizeAt>
SymbolicProgram::Sizes SymbolicProgram::sizes_from(SizeAt&& size_at) const {
  Sizes sizes;
  for (const Varying& each : varying_) sizes.push_back(size_at(each.input, each.dim));
  return sizes;
}

template <class Of>
bool SymbolicProgram::find_terms(SizeTerms& terms, const std::vector<Of>& of,
                                 std::vector<Number>& numbers, std::string& refusal) const {
  std::vector<std::vector<int64_t>> all;
  for (const Of& each : of) all.push_back(numbers_of(each));
  for (size_t at = 0; at < all[0].size(); ++at) {
    std::vector<int64_t> seen;
    for (const auto& each : all) seen.push_back(each[at]);
    if (std::ranges::count(seen, seen[0]) == std::ssize(seen)) continue;
    const std::vector<SizeTerm>& found = terms.find(seen);
    if (found.size() != 1) {
      refusal = fmt::format("{} has {}, which {}", owner_of(of[0], at), fmt::join(seen, " and "),
                            found.empty()
                                ? "is neither a product of sizes nor a sum of them and a number"
                                : "may depend on sizes in several ways, so that others must tell");
      return false;
    }
    numbers.push_back({at, found[0]});
  }
  return true;
}

SymbolicProgram::Made SymbolicProgram::make(std::vector<Sample> samples) {
  LS_CHECK(samples.size() >= 2, Error, "[compile] sizes vary in two samples at least, got {}.",
           samples.size());
  std::unique_ptr<SymbolicProgram> made(new SymbolicProgram(std::move(samples)));
  const auto refuse = [](std::string reason) { return Made{nullptr, std::move(reason)}; };
  const std::vector<Sample>& all = made->samples_;
  for (size_t k = 0; k + 1 < all.size(); ++k) {
    if (std::string why = all[k].program->difference(*all.back().program); !why.empty()) {
      return refuse(std::move(why));
    }
  }
  made->find_varying();
  if (made->varying_.size() > kMostVarying) return refuse("too many sizes vary at once");
  std::vector<Sizes> sizes;
  std::vector<Guard> guards;
  std::vector<std::vector<Part>> parts(all.back().program->graphs().size());
  for (const Sample& sample : all) {
    sizes.push_back(made->sizes_from(
        [&](size_t input, size_t dim) { return sample.guard.inputs[input].type.sizes[dim]; }));
    guards.push_back(sample.guard);
    const std::vector<const Graph*> own = sample.program->graphs();
    const Program::BackwardSources sources = sample.program->backward_sources();
    for (size_t g = 0; g < own.size(); ++g) {
      parts[g].push_back({*own[g], g == 0 ? 0 : sources.count()});
      if (std::string why = unlike_inferred(parts[g].back(), *own[0], sources); !why.empty()) {
        return refuse(std::move(why));
      }
    }
  }
  SizeTerms terms(std::move(sizes));
  std::string refusal;
  if (!made->find_terms(terms, guards, made->of_inputs_, refusal)) return refuse(refusal);
  for (const std::vector<Part>& of_samples : parts) {
    for (const Part& part : of_samples) {
      if (std::string why = other_difference(of_samples[0].graph, part.graph); !why.empty()) {
        return refuse(std::move(why));
      }
    }
    if (!made->find_terms(terms, of_samples, made->of_graphs_.emplace_back(), refusal)) {
      return refuse(refusal);
    }
  }
  for (const Sample& sample : all) {
    made->made_.emplace_back(made->sizes_from([&](size_t input, size_t dim) {
      return sample.guard.inputs[input].type.sizes[dim];
    }),
                             sample.program);
  }
  return {std::move(made), {}};
}

bool SymbolicProgram::fit(const Sizes& sizes, const CompiledArguments& call) const {
  size_t at = 0;
  auto next = of_inputs_.begin();
  const auto is_next = [&](int64_t recorded, int64_t got) {
    const bool depends = next != of_inputs_.end() && next->at == at;
    ++at;
    return got == (depends ? (next++)->term.value(sizes) : recorded);
  };
  const std::vector<Guard::Input>& inputs = samples_[0].guard.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined) continue;
    const ValueType& type = inputs[i].type;
    const Tensor& tensor =
        i < call.inputs.size() ? call.inputs[i] : call.parameters[i - call.inputs.size()];
    for (size_t d = 0; d < type.sizes.size(); ++d) {
      if (!is_next(type.sizes[d], tensor.sizes()[d])) return false;
    }
    for (size_t d = 0; d < type.strides.size(); ++d) {
      if (!is_next(type.strides[d], tensor.strides()[d])) return false;
    }
  }
  return true;
}

std::shared_ptr<Program> SymbolicProgram::make_program(const Sizes& sizes) const {
  const Program& recorded = *samples_[0].program;
  const std::vector<const Graph*> of_recorded = recorded.graphs();
  const Program::BackwardSources sources = recorded.backward_sources();
  std::vector<Graph> graphs;
  try {
    for (size_t g = 0; g < of_graphs_.size(); ++g) {
      Part part{*of_recorded[g], g == 0 ? 0 : sources.count()};
      size_t at = 0;
      auto next = of_graphs_[g].begin();
      const auto set = [&](int64_t& number) {
        if (next != of_graphs_[g].end() && next->at == at) number = (next++)->term.value(sizes);
        ++at;
      };
      each_number(part, set);
      if (g > 0) take_given_types(part, graphs[0], sources);
      infer_types(part.graph);
      if (!part.graph.buffers.empty()) part.graph = plan_memory(std::move(part.graph));
      if (has_become_one(*of_recorded[g], part.graph)) return nullptr;
      graphs.push_back(std::move(part.graph));
    }
    return recorded.resized(std::move(graphs));
  } catch (const Error&) {  // it is recorded, and tells
    return nullptr;
  }
}

std::shared_ptr<const Program> SymbolicProgram::find(const CompiledArguments& call,
                                                     const MakeReady& make_ready) {
  if (!samples_[0].guard.holds_but_for_sizes(call)) return nullptr;
  Sizes sizes = sizes_from([&](size_t input, size_t dim) {
    const size_t inputs = call.inputs.size();
    return (input < inputs ? call.inputs[input] : call.parameters[input - inputs]).sizes()[dim];
  });
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] < 2 || sizes[k] % varying_[k].step != 0) return nullptr;
  }
  if (!fit(sizes, call)) return nullptr;
  const auto known = std::ranges::find(made_, sizes, [](const auto& each) { return each.first; });
  if (known != made_.end()) {
    std::rotate(made_.begin(), known, known + 1);
    return made_.front().second;
  }
  std::shared_ptr<Program> program = make_program(sizes);
  if (program) make_ready(*program);
  if (made_.size() == kMostSizes) made_.pop_back();
  made_.emplace(made_.begin(), std::move(sizes), program);
  return program;
}

std::vector<std::shared_ptr<const Program>> SymbolicProgram::programs() const {
  std::vector<std::shared_ptr<const Program>> programs;
  for (const auto& [sizes, program] : made_) {
    if (program) programs.push_back(program);
  }
  return programs;
}

std::string SymbolicProgram::description() const {
  const std::vector<Guard::Input>& inputs = samples_[0].guard.inputs;
  std::string text;
  size_t at = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueType& type = inputs[i].type;
    std::vector<std::string> sizes;
    bool varies = false;
    for (const int64_t size : type.sizes) {
      const auto number = std::ranges::find(of_inputs_, at++, &Number::at);
      sizes.push_back(number == of_inputs_.end() ? std::to_string(size)
                                                 : fmt::format("s{}", number->term.sizes[0]));
      varies = varies || number != of_inputs_.end();
    }
    at += type.strides.size();
    if (!varies) continue;
    ValueType scalar = type;
    scalar.sizes.clear();
    scalar.strides.clear();
    const std::string dtype = to_string(scalar);
    text += fmt::format("{}input {} is {}[{}]", text.empty() ? "" : ", ", i,
                        dtype.substr(0, dtype.find('[')), fmt::join(sizes, ", "));
  }
  for (size_t k = 0; k < varying_.size(); ++k) {
    text += fmt::format(
        "{}s{} {}", k == 0 ? ", for " : " and ", k,
        varying_[k].step == 1 ? "from 2" : fmt::format("in multiples of {}", varying_[k].step));
  }
  return text;
}

}  // namespace lockstep::compiler
