#include "compile/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/cast_source.h"
#include "autograd/function.h"
#include "autograd/gradient_delivery.h"
#include "compile/captured_run.h"
#include "compile/native/kernel_builder.h"
#include "compile/prepared_run.h"
#include "core/base/check.h"
#include "core/ops/factory/copy.h"

namespace lockstep::compiler {

namespace {

/// The tensor, or a copy with the type's strides: a graph knows how its inputs lie in memory.
Tensor as_recorded(const Tensor& tensor, const ValueType& type) {
  if (same(tensor.strides(), type.strides)) return tensor;
  const Tensor copy =
      empty_strided_tensor(type.sizes, type.strides, tensor.dtype(), tensor.device());
  copy_(copy, tensor);
  return copy;
}

/// Runs a graph as its CUDA graph or as its prepared calls; nothing where it has neither, or these
/// leave the run to the caller.
std::optional<std::vector<Tensor>> run_as_a_whole(CapturedRun* captured, PreparedRun* prepared,
                                                  const std::vector<Tensor>& inputs) {
  if (captured != nullptr) {
    if (auto results = captured->run(inputs)) return results;
  }
  return prepared != nullptr ? prepared->run(inputs) : std::nullopt;
}

}  // namespace

/// The program as one step of a recorded computation.
struct CompiledCall : Function<CompiledCall> {
  static constexpr bool once_differentiable = true;

  /// `results` are those of the program's forward graph, which were computed from the inputs.
  static std::vector<Tensor> forward(FunctionContext& ctx,
                                     const std::shared_ptr<const Program>& program,
                                     std::vector<Tensor>* computed, TensorList /*inputs*/) {
    std::vector<Tensor> results = std::move(*computed);
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
    std::vector<Tensor> inputs = ctx.take_saved_tensors();
    const Graph& graph = program->backward_->graph.graph();
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!program->carries_gradient_[i]) continue;
      // Gradients come in any strides: that of a sum is one number, repeated.
      const auto id = static_cast<size_t>(graph.inputs[inputs.size()]);
      inputs.push_back(as_recorded(grads[i], graph.values[id]));
    }
    const Program::Backward& backward =
        add_places(ctx, *program, inputs) ? *program->placed_backward_ : *program->backward_;
    std::optional<std::vector<Tensor>> results =
        run_as_a_whole(backward.captured.get(), backward.prepared.get(), inputs);
    if (!results) {
      // A leaf's gradient goes on its way when the leaf is not read any more.
      const auto send = [](size_t i, Tensor& gradient) { return send_gradient_early(i, gradient); };
      results = backward.graph.run(std::move(inputs), send);
    }
    Gradients gradients;
    for (Tensor& gradient : *results) gradients.push_back(std::move(gradient));
    return gradients;
  }

 private:
  /// Adds the places of gradients where this backward has them all, and returns whether it has.
  static bool add_places(const FunctionContext& ctx, const Program& program,
                         std::vector<Tensor>& inputs) {
    if (!program.placed_backward_) return false;
    const Program::Backward& backward = *program.placed_backward_;
    const Graph& graph = backward.graph.graph();
    const size_t first = inputs.size();
    for (const size_t input : backward.places) {
      Tensor place = ctx.destination(input);
      const auto id = static_cast<size_t>(graph.inputs[inputs.size()]);
      if (!place.defined() || ValueType::of(place) != graph.values[id]) {
        inputs.resize(first);
        return false;
      }
      inputs.push_back(std::move(place));
    }
    return true;
  }
};

void Program::request_kernels(bool waits) {
  if (forward_) forward_->request_kernels();
  if (backward_) backward_->graph.request_kernels();
  if (placed_backward_) placed_backward_->graph.request_kernels();
  for (const GroupKernel* const kernel : kernels()) {
    if (waits && kernel->pending() != nullptr) kernel->pending()->wait();
  }
}

Program::Program() = default;
Program::~Program() = default;
Program::Backward::Backward(Graph of, const std::vector<ValueId>& ids, std::vector<size_t> inputs,
                            const std::vector<std::vector<ValueId>>& not_before)
    : graph(std::move(of), ids, not_before), places(std::move(inputs)) {}
Program::Backward::Backward(Graph of, const Backward& alike)
    : graph(std::move(of), alike.graph), places(alike.places) {}
Program::Backward::~Backward() = default;

bool Program::is_prepared() const { return prepared_forward_ && prepared_forward_->is_ready(); }

void Program::prepare_small_graphs() {
  if (!forward_) return;
  prepared_forward_ = PreparedRun::make(*forward_);
  for (std::optional<Backward>* const backward : {&backward_, &placed_backward_}) {
    if (backward->has_value()) (*backward)->prepared = PreparedRun::make((*backward)->graph);
  }
}

void Program::enable_cuda_graphs() {
  if (!forward_) return;
  const size_t outputs = same_as_input_.size();
  // What the function reads besides its arguments comes last, and stays where it is.
  const size_t arguments = forward_->graph().inputs.size() - captured_.size();
  CapturedRun::Copies copies{.inputs = std::vector<bool>(forward_->graph().inputs.size()),
                             .outputs = outputs};
  std::fill_n(copies.inputs.begin(), arguments, true);
  captured_forward_ = std::make_unique<CapturedRun>(*forward_, std::move(copies));
  const BackwardSources sources = backward_sources();
  for (std::optional<Backward>* const backward : {&backward_, &placed_backward_}) {
    if (!backward->has_value()) continue;
    const Graph& graph = (*backward)->graph.graph();
    CapturedRun::Copies of_gradients{.inputs = std::vector<bool>(graph.inputs.size()),
                                     .outputs = graph.outputs.size(),
                                     .may_be_views = true};
    std::fill_n(of_gradients.inputs.begin() + static_cast<std::ptrdiff_t>(sources.saved.size()),
                sources.outputs.size(), true);
    (*backward)->captured =
        std::make_unique<CapturedRun>((*backward)->graph, std::move(of_gradients));
  }
}

std::vector<std::string> Program::capture_refusals() const {
  std::vector<std::string> refusals;
  const auto add = [&](const char* what, const std::unique_ptr<CapturedRun>& captured) {
    const std::string why = captured ? captured->refusal() : std::string();
    if (!why.empty()) refusals.push_back(fmt::format("{}: {}", what, why));
  };
  add("forward", captured_forward_);
  if (backward_) add("backward", backward_->captured);
  if (placed_backward_) add("backward", placed_backward_->captured);
  return refusals;
}

std::vector<const GroupKernel*> Program::kernels() const {
  std::vector<const GroupKernel*> all;
  const auto add = [&](const Interpreter& graph) {
    std::ranges::copy(graph.kernels(), std::back_inserter(all));
  };
  if (forward_) add(*forward_);
  if (backward_) add(backward_->graph);
  if (placed_backward_) add(placed_backward_->graph);
  return all;
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

bool Program::may_change_captured(TensorList inputs) const {
  if (forward().writes.empty()) return false;
  return std::ranges::any_of(inputs, [&](const Tensor& input) {
    return input.defined() && std::ranges::any_of(captured_, [&](const Tensor& captured) {
             return captured.storage() == input.storage();
           });
  });
}

std::string Program::difference(const Program& other) const {
  if (path_ || other.path_) return "it reads values on the host";
  const bool same_tensors = std::ranges::equal(
      captured_, other.captured_, [](const Tensor& a, const Tensor& b) { return a.is_same(b); });
  if (!same_tensors) return "it reads or makes other tensors on the host for other sizes";
  if (casts_ != other.casts_ || taken_ != other.taken_) return "it reads other arguments";
  if (same_as_input_ != other.same_as_input_ || carries_gradient_ != other.carries_gradient_ ||
      backward_.has_value() != other.backward_.has_value() ||
      placed_backward_.has_value() != other.placed_backward_.has_value() ||
      (placed_backward_ && placed_backward_->places != other.placed_backward_->places)) {
    return "it returns other tensors";
  }
  return {};
}

std::vector<const Graph*> Program::graphs() const {
  std::vector<const Graph*> all = {&forward_->graph()};
  if (backward_) all.push_back(&backward_->graph.graph());
  if (placed_backward_) all.push_back(&placed_backward_->graph.graph());
  return all;
}

Program::BackwardSources Program::backward_sources() const {
  const std::vector<ValueId>& outputs = forward().outputs;
  const size_t own = same_as_input_.size();
  BackwardSources sources;
  sources.saved.assign(outputs.begin() + static_cast<std::ptrdiff_t>(own), outputs.end());
  for (size_t i = 0; i < own; ++i) {
    if (carries_gradient_[i]) sources.outputs.push_back(outputs[i]);
  }
  return sources;
}

std::shared_ptr<Program> Program::resized(std::vector<Graph> to) const {
  auto program = std::make_shared<Program>();
  size_t next = 0;
  program->forward_.emplace(std::move(to.at(next++)), *forward_);
  if (backward_) program->backward_.emplace(std::move(to.at(next++)), *backward_);
  if (placed_backward_) {
    program->placed_backward_.emplace(std::move(to.at(next++)), *placed_backward_);
  }
  program->casts_ = casts_;
  program->taken_ = taken_;
  program->captured_ = captured_;
  program->captured_types_ = captured_types_;
  program->captured_require_grad_ = captured_require_grad_;
  program->same_as_input_ = same_as_input_;
  program->carries_gradient_ = carries_gradient_;
  return program;
}

std::vector<Tensor> Program::arguments(TensorList inputs, TensorList parameters) const {
  std::vector<Tensor> all(inputs.begin(), inputs.end());
  all.insert(all.end(), parameters.begin(), parameters.end());
  for (const Cast& cast : casts_)
    all.push_back(autocast_cast(parameters[cast.parameter], cast.dtype));
  if (taken_) {
    std::vector<Tensor> taken;
    taken.reserve(taken_->size());
    for (const size_t i : *taken_) taken.push_back(std::move(all[i]));
    all = std::move(taken);
  }
  all.insert(all.end(), captured_.begin(), captured_.end());
  return all;
}

bool Program::differentiates() const { return backward_ && is_grad_enabled(); }

bool Program::is_kept(size_t input) const {
  return differentiates() ||
         std::ranges::find(same_as_input_, std::optional<size_t>(input)) != same_as_input_.end();
}

std::vector<Tensor> Program::run(TensorList inputs, TensorList parameters) const {
  LS_CHECK(forward_, Error,
           "[compile] the program is one way through a function that reads values "
           "on the host.");
  std::vector<Tensor> all = arguments(inputs, parameters);
  std::vector<Tensor> kept(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_kept(i)) kept[i] = all[i];
  }
  std::optional<std::vector<Tensor>> results =
      run_as_a_whole(captured_forward_.get(), prepared_forward_.get(), all);
  if (!results) results = forward_->run(std::move(all));
  return deliver_outputs(kept, *std::move(results));
}

std::vector<Tensor> Program::deliver(TensorList inputs, std::vector<Tensor> results) const {
  return deliver_outputs(arguments(inputs, {}), std::move(results));
}

std::vector<Tensor> Program::deliver_outputs(const std::vector<Tensor>& all,
                                             std::vector<Tensor> results) const {
  std::vector<Tensor> outputs;
  if (differentiates()) {
    outputs = CompiledCall::apply(shared_from_this(), &results, TensorList(all));
  } else {
    outputs = std::move(results);
    outputs.resize(same_as_input_.size());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (same_as_input_[i]) outputs[i] = all[*same_as_input_[i]];
  }
  return outputs;
}

}  // namespace lockstep::compiler
