#include "compile/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "autograd/cast_source.h"
#include "autograd/meta.h"
#include "autograd/saved_tensor_hooks.h"
#include "compile/passes.h"
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

}  // namespace

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
  if (std::ranges::any_of(read_, [](const Tensor& tensor) {
        return tensor.requires_grad() && has_gradient_hooks(tensor);
      })) {
    recorder_.fail("a tensor that it reads has hooks on its gradient");
  }
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
