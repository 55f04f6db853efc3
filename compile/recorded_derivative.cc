// How the derivative of a Program is recorded, and what forward keeps for it.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "autograd/gradient_delivery.h"
#include "autograd/graph_run.h"
#include "compile/passes.h"
#include "compile/recomputation.h"
#include "compile/recording.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"

namespace lockstep::compiler {

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
    const BackwardStaysGuard seen;
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

}  // namespace lockstep::compiler
