#include "compile/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "autograd/autograd.h"
#include "autograd/function.h"
#include "autograd/meta.h"
#include "compile/recorder.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"

namespace lockstep::compiler {

namespace {

/// Whether backward calls functions of the user with the tensor's gradient. They would be recorded,
/// and called by the engine as well.
bool has_gradient_hooks(const Tensor& tensor) {
  const NodeHooks* const hooks = gradient_edge(tensor).node->hooks();
  return hooks != nullptr && (!hooks->tensor.empty() || !hooks->before.empty());
}

/// The part of a graph that backward runs: what it reads of the rest, and the gradients that it
/// takes, are its inputs.
Graph backward_part(const Graph& whole, size_t first_node, const std::vector<ValueId>& saved,
                    const std::vector<ValueId>& gradients, std::vector<ValueId> results) {
  Graph part;
  part.values = whole.values;
  part.inputs = saved;
  part.inputs.insert(part.inputs.end(), gradients.begin(), gradients.end());
  part.nodes.assign(whole.nodes.begin() + static_cast<std::ptrdiff_t>(first_node),
                    whole.nodes.end());
  part.outputs = std::move(results);
  return part;
}

/// What the nodes from `first_node` on, or `results`, read of values that are made before.
std::vector<ValueId> values_saved(const Graph& whole, size_t first_node,
                                  const std::vector<ValueId>& gradients,
                                  const std::vector<ValueId>& results) {
  std::set<ValueId> own(gradients.begin(), gradients.end());
  std::vector<ValueId> saved;
  const auto read = [&](ValueId id) {
    if (id != kAbsent && own.insert(id).second) saved.push_back(id);
  };
  for (size_t i = first_node; i < whole.nodes.size(); ++i) {
    each_read(whole.nodes[i], read);
    own.insert(whole.nodes[i].results.begin(), whole.nodes[i].results.end());
  }
  for (const ValueId id : results) read(id);
  return saved;
}

bool is_synchronous(const std::vector<Tensor>& tensors) {
  return std::ranges::all_of(tensors, [](const Tensor& tensor) { return tensor.device() == kCPU; });
}

}  // namespace

/// The program as one step of a recorded computation.
struct CompiledCall : Function<CompiledCall> {
  static constexpr bool once_differentiable = true;

  static std::vector<Tensor> forward(FunctionContext& ctx,
                                     const std::shared_ptr<const Program>& program,
                                     TensorList inputs) {
    std::vector<Tensor> results = program->forward_->run(inputs);
    const size_t outputs = program->same_as_input_.size();
    ctx.save_for_backward(TensorList(std::span<const Tensor>(results).subspan(outputs)));
    ctx.set_data(program);
    results.resize(outputs);
    std::vector<Tensor> without;
    for (size_t i = 0; i < outputs; ++i) {
      if (!program->carries_gradient_[i] && results[i].defined()) without.push_back(results[i]);
    }
    ctx.mark_non_differentiable(without);
    return results;
  }

  static Gradients backward(FunctionContext& ctx, TensorList grads) {
    const auto program = ctx.data<std::shared_ptr<const Program>>();
    std::vector<Tensor> inputs = ctx.saved_tensors();
    for (size_t i = 0; i < grads.size(); ++i) {
      if (program->carries_gradient_[i]) inputs.push_back(grads[i]);
    }
    Gradients gradients;
    for (Tensor& gradient : program->backward_->run(inputs)) {
      gradients.push_back(std::move(gradient));
    }
    return gradients;
  }
};

Program::Recorded Program::record(const Body& body, TensorList inputs,
                                  const std::vector<Pass>& passes) {
  Recorder recorder;
  for (const Tensor& input : inputs) recorder.add_input(input);
  Recorded recorded;
  auto program = std::make_shared<Program>();
  const auto refuse = [&](std::string reason) {
    recorded.failure = std::move(reason);
    return recorded;
  };
  {
    const ModeGuard recording(recorder);
    recorded.outputs = body(inputs);
  }
  std::vector<ValueId> outputs;
  std::vector<Tensor> roots;
  for (const Tensor& output : recorded.outputs) {
    const std::optional<size_t> input =
        output.defined() ? recorder.input_index(output) : std::nullopt;
    program->same_as_input_.push_back(input);
    outputs.push_back(recorder.value_of(output));
    const bool carries = output.defined() && output.requires_grad() && !input;
    program->carries_gradient_.push_back(carries);
    if (carries) roots.push_back(output);
    if (output.defined() && recorder.is_view_of_changed_input(output)) {
      recorder.fail("it returns a view of an input that it changes");
    }
  }
  const std::vector<Graph::Write> writes = recorder.writes();
  const std::vector<Tensor> read = recorder.inputs();
  for (const Graph::Write& write : writes) {
    const auto at = std::ranges::find(recorder.graph().inputs, write.input);
    if (read[static_cast<size_t>(at - recorder.graph().inputs.begin())].requires_grad()) {
      recorder.fail("it changes a tensor that is part of a recorded computation");
    }
  }
  if (!roots.empty() && !is_synchronous(read)) {
    recorder.fail("derivatives are recorded on the cpu only");
  }
  if (!roots.empty() && std::ranges::any_of(read, [](const Tensor& tensor) {
        return tensor.requires_grad() && has_gradient_hooks(tensor);
      })) {
    recorder.fail("a tensor that it reads has hooks on its gradient");
  }
  if (!recorder.failure().empty()) return refuse(recorder.failure());

  Graph forward = recorder.graph();
  forward.outputs = outputs;
  forward.writes = writes;
  program->captured_.assign(read.begin() + static_cast<std::ptrdiff_t>(inputs.size()), read.end());
  std::optional<Graph> backward;
  if (!roots.empty()) {
    const size_t first_node = recorder.graph().nodes.size();
    std::vector<Tensor> gradients;
    std::vector<ValueId> gradient_ids;
    for (const Tensor& root : roots) {
      gradients.push_back(ones_like(root));
      recorder.add_input(gradients.back());
      gradient_ids.push_back(recorder.value_of(gradients.back()));
    }
    std::vector<Tensor> differentiable;
    for (const Tensor& tensor : read) {
      if (tensor.requires_grad()) differentiable.push_back(tensor);
    }
    std::vector<Tensor> results;
    try {
      const ModeGuard recording(recorder);
      results =
          grad(roots, differentiable, gradients, {.retain_graph = true, .allow_unused = true});
    } catch (const Error& error) {
      return refuse(fmt::format("in backward, {}", error.what()));
    }
    std::vector<ValueId> result_ids;
    size_t next = 0;
    for (const Tensor& tensor : read) {
      result_ids.push_back(tensor.requires_grad() ? recorder.value_of(results[next++]) : kAbsent);
    }
    if (!recorder.failure().empty()) return refuse("in backward, " + recorder.failure());
    // What backward read for the first time is an input of forward as well, which saves it.
    const std::vector<Tensor>& all = recorder.inputs();
    for (size_t i = read.size() + roots.size(); i < all.size(); ++i) {
      program->captured_.push_back(all[i]);
      forward.inputs.push_back(recorder.graph().inputs[i]);
      result_ids.push_back(kAbsent);
    }
    forward.values = recorder.graph().values;
    const std::vector<ValueId> saved =
        values_saved(recorder.graph(), first_node, gradient_ids, result_ids);
    forward.outputs.insert(forward.outputs.end(), saved.begin(), saved.end());
    backward =
        backward_part(recorder.graph(), first_node, saved, gradient_ids, std::move(result_ids));
  }
  for (const Tensor& tensor : program->captured_) {
    program->captured_types_.push_back(ValueType::of(tensor));
    program->captured_require_grad_.push_back(tensor.requires_grad());
  }
  program->forward_.emplace(run_passes(std::move(forward), passes, &recorded.log));
  if (backward) {
    program->backward_.emplace(run_passes(std::move(*backward), passes, &recorded.log));
  }
  recorded.program = std::move(program);
  return recorded;
}

bool Program::captured_are_as_recorded() const {
  for (size_t i = 0; i < captured_.size(); ++i) {
    if (ValueType::of(captured_[i]) != captured_types_[i] ||
        captured_[i].requires_grad() != captured_require_grad_[i]) {
      return false;
    }
  }
  return true;
}

std::vector<Tensor> Program::run(TensorList inputs) const {
  std::vector<Tensor> all(inputs.begin(), inputs.end());
  all.insert(all.end(), captured_.begin(), captured_.end());
  std::vector<Tensor> outputs;
  if (backward_ && is_grad_enabled()) {
    outputs = CompiledCall::apply(shared_from_this(), TensorList(all));
  } else {
    outputs = forward_->run(all);
    outputs.resize(same_as_input_.size());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (same_as_input_[i]) outputs[i] = all[*same_as_input_[i]];
  }
  return outputs;
}

}  // namespace lockstep::compiler
