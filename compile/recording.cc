// How a Program is recorded.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "autograd/cast_source.h"
#include "autograd/gradient_delivery.h"
#include "autograd/meta.h"
#include "autograd/saved_tensor_hooks.h"
#include "compile/passes.h"
#include "compile/program.h"
#include "compile/recomputation.h"
#include "compile/recorder.h"
#include "core/base/check.h"
#include "core/dispatch/thread_state.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/random_state_guard.h"

namespace lockstep::compiler {

namespace {

/// Whether backward calls functions of the user with the tensor's gradient. They would be recorded,
/// and called by the engine as well. What stands before the sink of a leaf runs in accumulation
/// alone.
bool has_gradient_hooks(const Tensor& tensor) {
  const NodeHooks* const hooks = gradient_edge(tensor).node->hooks();
  return hooks != nullptr &&
         (!hooks->tensor.empty() || (!tensor.is_leaf() && !hooks->before.empty()));
}

/// Whether backward of all of them runs on the calling thread.
bool is_synchronous(const std::vector<Tensor>& tensors) {
  return std::ranges::all_of(tensors, [](const Tensor& tensor) {
    return tensor.device() == kCPU || tensor.device() == kMeta;
  });
}

/// Another tensor of the same elements, without the history.
Tensor apart(const Tensor& tensor) {
  Tensor alias = alias_tensor(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset(),
                              tensor.dtype(), false);
  if (tensor.requires_grad()) alias.set_requires_grad();
  return alias;
}

/// Announces the casts of parameters to the recorder, as inputs, when autocast first asks for them.
class ParameterCasts final : public CastSource {
 public:
  ParameterCasts(Recorder& recorder, TensorList parameters)
      : recorder_(recorder), parameters_(parameters) {}

  Tensor cast(const Tensor& tensor, DType dtype) override {
    const auto found = std::ranges::find_if(
        parameters_, [&](const Tensor& parameter) { return parameter.is_same(tensor); });
    if (found == parameters_.end()) return {};
    const auto index = static_cast<size_t>(found - parameters_.begin());
    for (const Given& given : given_) {
      if (given.parameter == index && given.tensor.dtype() == dtype) return given.tensor;
    }
    Tensor given;
    {
      const ThreadStateGuard unseen(ThreadState::capture().without_modes());
      const CastSourceGuard no_source(nullptr);
      given = apart(autocast_cast(tensor, dtype));
    }
    if (!same(given.strides(), tensor.strides())) {
      recorder_.fail("the cast of a parameter has other strides than it");
    }
    recorder_.add_input(given);
    given_.push_back({index, given});
    return given;
  }

  struct Given {
    size_t parameter;
    Tensor tensor;
  };
  const std::vector<Given>& given() const { return given_; }

 private:
  Recorder& recorder_;
  TensorList parameters_;
  std::vector<Given> given_;
};

}  // namespace

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
  /// The same for what was recorded apart. Leaves out what is not read of the inputs, and computes
  /// gradients of leaves from `first_leaf` on in places as well.
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

void Program::Recording::take_outputs(const std::vector<Tensor>& outputs) {
  for (const Tensor& output : outputs) {
    const std::optional<size_t> input =
        output.defined() ? recorder_.input_index(output) : std::nullopt;
    program_->same_as_input_.push_back(input);
    outputs_.push_back(recorder_.value_of(output));
    const bool carries = output.defined() && output.requires_grad() && !input;
    program_->carries_gradient_.push_back(carries);
    if (carries) roots_.push_back(output);
    if (output.defined() && recorder_.is_view_of_changed_input(output)) {
      recorder_.fail("it returns a view of an input that it changes");
    }
  }
  read_ = recorder_.inputs();
}

void Program::Recording::check_read() {
  for (const Graph::Write& write : recorder_.writes()) {
    const auto at = std::ranges::find(recorder_.graph().inputs, write.input);
    if (read_[static_cast<size_t>(at - recorder_.graph().inputs.begin())].requires_grad()) {
      recorder_.fail("it changes a tensor that is part of a recorded computation");
    }
  }
  if (roots_.empty()) return;
  if (!is_synchronous(read_)) recorder_.fail("derivatives are recorded on the cpu only");
  if (std::ranges::any_of(read_, [](const Tensor& tensor) {
        return tensor.requires_grad() && has_gradient_hooks(tensor);
      })) {
    recorder_.fail("a tensor that it reads has hooks on its gradient");
  }
}

void Program::Recording::add_root_gradients() {
  for (const Tensor& root : roots_) {
    root_gradients_.push_back(ones_like(root));
    recorder_.add_input(root_gradients_.back());
    gradients_.push_back(recorder_.value_of(root_gradients_.back()));
  }
}

Program::Recording::Derivative Program::Recording::differentiate(
    const std::vector<Tensor>& destinations, bool again) {
  Derivative derivative;
  derivative.first_node = recorder_.graph().nodes.size();
  std::vector<Tensor> differentiable, into;
  for (size_t i = 0; i < read_.size(); ++i) {
    if (!read_[i].requires_grad()) continue;
    differentiable.push_back(read_[i]);
    if (destinations.empty()) continue;
    into.push_back(destinations[i]);
    if (into.back().defined()) recorder_.add_input(into.back());
  }
  std::vector<Tensor> results;
  try {
    const ModeGuard recording(recorder_);
    results = grad_into(roots_, differentiable, into, root_gradients_,
                        {.retain_graph = again, .allow_unused = true});
  } catch (const Error& error) {
    recorder_.fail(error.what());
    return derivative;
  }
  size_t next = 0;
  for (const Tensor& tensor : read_) {
    derivative.results.push_back(tensor.requires_grad() ? recorder_.value_of(results[next++])
                                                        : kAbsent);
  }
  derivative.end_node = recorder_.graph().nodes.size();
  std::set<ValueId> touched;
  for (size_t i = derivative.first_node; i < derivative.end_node; ++i) {
    each_read(recorder_.graph().nodes[i], [&](ValueId id) { touched.insert(id); });
  }
  for (size_t i = 0; i < destinations.size(); ++i) {
    ValueId place = kAbsent;
    if (const auto input = recorder_.input_index(destinations[i]); destinations[i].defined()) {
      place = recorder_.graph().inputs[*input];
    }
    derivative.places.push_back(touched.contains(place) ? place : kAbsent);
  }
  return derivative;
}

std::vector<Tensor> Program::Recording::destinations(size_t first, size_t end) const {
  std::vector<Tensor> destinations(read_.size());
  for (size_t i = first; i < end; ++i) {
    const Tensor& leaf = read_[i];
    if (!leaf.requires_grad()) continue;
    destinations[i] =
        empty_strided_tensor(leaf.sizes(), leaf.strides(), leaf.dtype(), leaf.device());
  }
  return destinations;
}

void Program::Recording::add_saved(const Derivative& of) {
  std::set<ValueId> own(gradients_.begin(), gradients_.end());
  own.insert(of.places.begin(), of.places.end());
  own.insert(saved_.begin(), saved_.end());
  const auto read = [&](ValueId id) {
    if (id != kAbsent && own.insert(id).second) saved_.push_back(id);
  };
  for (size_t i = of.first_node; i < of.end_node; ++i) {
    const Node& node = recorder_.graph().nodes[i];
    each_read(node, read);
    own.insert(node.results.begin(), node.results.end());
  }
  for (const ValueId id : of.results) read(id);
}

void Program::Recording::keep_within_budget(const Graph& forward, size_t arguments) {
  if (saved_.empty()) return;
  const std::vector<ValueId> lives_on(
      forward.inputs.begin() + static_cast<std::ptrdiff_t>(arguments), forward.inputs.end());
  Recomputation chosen = choose_recomputed(forward, saved_, lives_on, options_.activation_budget);
  if (!chosen.nodes.empty()) {
    log_.push_back(fmt::format(
        "recompute: {} of {} nodes again in backward, which needs {} bytes of activations instead "
        "of {}",
        chosen.nodes.size(), forward.nodes.size(), chosen.bytes, chosen.bytes_of_needed));
  }
  saved_ = std::move(chosen.kept);
  again_ = std::move(chosen.nodes);
}

/// The part of the graph that backward runs: what it reads of the rest, the gradients that it takes
/// and the places that it writes are its inputs. What it computes again comes from the rest.
void Program::Recording::add_backward(const Derivative& of) {
  const Graph& whole = recorder_.graph();
  Graph part;
  part.values = whole.values;
  part.inputs = saved_;
  part.inputs.insert(part.inputs.end(), gradients_.begin(), gradients_.end());
  std::vector<size_t> written;
  std::vector<ValueId> places;
  for (size_t i = 0; i < of.places.size(); ++i) {
    if (of.places[i] == kAbsent) continue;
    written.push_back(i);
    places.push_back(of.places[i]);
  }
  part.inputs.insert(part.inputs.end(), places.begin(), places.end());
  part.nodes = with_recomputed(
      again_,
      std::vector<Node>(whole.nodes.begin() + static_cast<std::ptrdiff_t>(of.first_node),
                        whole.nodes.begin() + static_cast<std::ptrdiff_t>(of.end_node)),
      of.results);
  part.outputs = of.results;
  part = run_passes(std::move(part), options_.passes, &log_);
  const std::vector<std::vector<ValueId>> not_before = views_of_inputs(part);
  (places.empty() ? program_->backward_ : program_->placed_backward_)
      .emplace(std::move(part), places, std::move(written), not_before);
}

std::vector<std::vector<ValueId>> Program::Recording::views_of_inputs(const Graph& backward) const {
  std::vector<ValueId> memory(std::max(program_->forward().values.size(), backward.values.size()));
  std::iota(memory.begin(), memory.end(), 0);
  follow_views(program_->forward().nodes, memory);
  follow_views(backward.nodes, memory);
  std::vector<std::vector<ValueId>> views;
  for (const ValueId input : program_->forward().inputs) {
    std::vector<ValueId>& of_input = views.emplace_back();
    for (size_t id = 0; id < memory.size(); ++id) {
      if (memory[id] == memory[static_cast<size_t>(input)])
        of_input.push_back(static_cast<ValueId>(id));
    }
  }
  return views;
}

Program::Recorded Program::Recording::make(Graph forward, std::vector<Derivative> derivatives,
                                           size_t arguments, bool leaves_out) {
  forward.outputs = outputs_;
  forward.values = recorder_.graph().values;
  for (const Derivative& each : derivatives) add_saved(each);
  keep_within_budget(forward, arguments);
  forward.outputs.insert(forward.outputs.end(), saved_.begin(), saved_.end());
  if (!recorder_.reads().empty()) {
    program_->path_ =
        Path{.graph = std::move(forward), .arguments = arguments, .reads = recorder_.reads()};
    for (const Derivative& each : derivatives) add_backward(each);
    return recorded();
  }
  forward = run_passes(std::move(forward), options_.passes, &log_);
  if (leaves_out) {
    std::set<ValueId> read(forward.outputs.begin(), forward.outputs.end());
    for (const Node& node : forward.nodes) each_read(node, [&](ValueId id) { read.insert(id); });
    std::vector<size_t>& taken = program_->taken_.emplace();
    for (size_t i = 0; i < forward.inputs.size(); ++i) {
      if (read.contains(forward.inputs[i])) taken.push_back(i);
    }
    const auto keep_taken = [&](std::vector<ValueId>& by_input) {
      if (by_input.empty()) return;
      std::vector<ValueId> kept;
      for (const size_t i : taken) kept.push_back(by_input[i]);
      by_input = std::move(kept);
    };
    keep_taken(forward.inputs);
    for (Derivative& each : derivatives) keep_taken(each.results), keep_taken(each.places);
  }
  program_->forward_.emplace(std::move(forward));
  for (const Derivative& each : derivatives) add_backward(each);
  return recorded();
}

Program::Recorded Program::Recording::recorded() {
  Recorded recorded;
  recorded.program = std::move(program_);
  recorded.log = std::move(log_);
  return recorded;
}

Program::Recorded Program::Recording::finish(const std::vector<Tensor>& outputs, size_t arguments) {
  take_outputs(outputs);
  check_read();
  if (!recorder_.failure().empty()) return refuse(recorder_.failure());
  Graph forward = recorder_.graph();
  forward.writes = recorder_.writes();
  std::vector<Derivative> derivatives;
  if (!roots_.empty()) {
    add_root_gradients();
    derivatives.push_back(differentiate({}, /*again=*/true));
    if (!recorder_.failure().empty()) return refuse("in backward, " + recorder_.failure());
  }
  program_->captured_.assign(read_.begin() + static_cast<std::ptrdiff_t>(arguments), read_.end());
  // What backward read for the first time is an input of forward as well, which saves it.
  const std::vector<Tensor>& all = recorder_.inputs();
  for (size_t i = read_.size() + roots_.size(); i < all.size(); ++i) {
    program_->captured_.push_back(all[i]);
    forward.inputs.push_back(recorder_.graph().inputs[i]);
    derivatives[0].results.push_back(kAbsent);
  }
  for (const Tensor& tensor : program_->captured_) {
    program_->captured_types_.push_back(ValueType::of(tensor));
    program_->captured_require_grad_.push_back(tensor.requires_grad());
  }
  return make(std::move(forward), std::move(derivatives), arguments, /*leaves_out=*/false);
}

Program::Recorded Program::Recording::finish_apart(const std::vector<Tensor>& outputs,
                                                   const ParameterCasts& casts, size_t first_leaf,
                                                   size_t first_cast) {
  take_outputs(outputs);
  check_read();
  if (!recorder_.writes().empty()) recorder_.fail("it changes a tensor");
  if (read_.size() != first_cast + casts.given().size()) {
    recorder_.fail("it reads a tensor that is neither an argument nor a parameter");
  }
  for (const Tensor& output : outputs) {
    if (output.defined() && std::ranges::any_of(read_, [&](const Tensor& tensor) {
          return tensor.storage() == output.storage();
        })) {
      recorder_.fail("it returns an argument, or a view of one");
    }
  }
  if (!recorder_.failure().empty()) return refuse(recorder_.failure());
  const Graph forward = recorder_.graph();
  std::vector<Derivative> derivatives;
  if (!roots_.empty()) {
    add_root_gradients();
    derivatives.push_back(differentiate({}, /*again=*/true));
    if (recorder_.inputs().size() != read_.size() + roots_.size()) {
      recorder_.fail("it reads a tensor that is neither an argument nor a parameter");
    }
    if (!recorder_.failure().empty()) return refuse("in backward, " + recorder_.failure());
    derivatives.push_back(differentiate(destinations(first_leaf, first_cast), /*again=*/false));
    if (!recorder_.failure().empty()) return refuse("in backward, " + recorder_.failure());
    const std::vector<ValueId>& places = derivatives[1].places;
    if (std::ranges::count(places, kAbsent) == std::ssize(places)) derivatives.pop_back();
  }
  for (const Tensor& tensor : read_) {
    if (std::ranges::count_if(read_, [&](const Tensor& t) { return t.is_same(tensor); }) > 1) {
      return refuse("two of its parameters are one tensor");
    }
  }
  for (const Node& node : recorder_.graph().nodes) {
    // It counts from the beginning of memory, and so says where the recorded tensor lay.
    if (std::string_view(node.op->name()).starts_with("as_strided")) {
      return refuse(
          fmt::format("{}: it depends on where a tensor lies in memory", node.op->name()));
    }
  }
  for (const ParameterCasts::Given& given : casts.given()) {
    program_->casts_.push_back({given.parameter, given.tensor.dtype()});
  }
  return make(forward, std::move(derivatives), first_leaf, /*leaves_out=*/true);
}

Program::Recorded Program::record(const Body& body, TensorList inputs,
                                  const CompileOptions& options) {
  Recording recording(options);
  for (const Tensor& input : inputs) recording.recorder().add_input(input);
  std::vector<Tensor> outputs = recording.call(body, inputs, /*may_read=*/true);
  Recorded recorded = recording.finish(outputs, inputs.size());
  recorded.outputs = std::move(outputs);
  return recorded;
}

Program::Recorded Program::record_apart(const Body& body, TensorList inputs, TensorList parameters,
                                        const CompileOptions& options) {
  const RandomStateGuard others_draw_the_same;
  const ScopedValue<const SavedTensorHooksGuard*> no_hooks(detail::saved_tensor_hooks, nullptr);
  Recording recording(options);
  std::vector<Tensor> own;
  for (const Tensor& input : inputs) own.push_back(apart(input));
  for (const Tensor& input : own) recording.recorder().add_input(input);
  for (const Tensor& parameter : parameters) recording.recorder().add_input(parameter);
  ParameterCasts casts(recording.recorder(), parameters);
  std::vector<Tensor> outputs;
  {
    const CastSourceGuard guard(&casts);
    outputs = recording.call(body, own, /*may_read=*/false);
  }
  return recording.finish_apart(outputs, casts, inputs.size(), inputs.size() + parameters.size());
}

}  // namespace lockstep::compiler
