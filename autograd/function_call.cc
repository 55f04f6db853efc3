#include "autograd/function_call.h"

#include <algorithm>

#include "autograd/function_node.h"
#include "autograd/in_place.h"
#include "autograd/meta.h"
#include "core/base/check.h"

namespace lockstep {

namespace {

bool contains(std::span<const Tensor> tensors, const Tensor& wanted) {
  return std::ranges::any_of(tensors, [&](const Tensor& tensor) { return tensor.is_same(wanted); });
}

/// Another tensor over the same elements: a view if `origin` is given.
Tensor alias(const Tensor& of, std::optional<ViewOrigin> origin) {
  return alias_tensor(of, of.sizes(), of.strides(), of.storage_offset(), of.dtype(),
                      origin.has_value(), origin.value_or(ViewOrigin::kRecorded));
}

std::vector<Tensor> copy_of_list(TensorList tensors) { return {tensors.begin(), tensors.end()}; }

}  // namespace

void FunctionContext::save_for_backward(TensorList tensors) {
  node_.to_save_ = copy_of_list(tensors);
}

void FunctionContext::mark_dirty(TensorList tensors) { node_.dirty_ = copy_of_list(tensors); }

void FunctionContext::mark_non_differentiable(TensorList tensors) {
  node_.non_differentiable_ = copy_of_list(tensors);
}

void FunctionContext::set_materialize_grads(bool on) { node_.materialize_ = on; }

const std::vector<Tensor>& FunctionContext::saved_tensors() {
  if (!unpacked_) unpacked_ = node_.unpack(owner_);
  return *unpacked_;
}

bool FunctionContext::needs_input_grad(size_t i) const {
  const std::span<const Edge> edges = node_.next_edges();
  return i < edges.size() && edges[i] && (i >= 64 || ((call_.needs >> i) & 1) != 0);
}

std::vector<Tensor> FunctionContext::take_saved_tensors() {
  std::vector<Tensor> taken = node_.unpack(owner_);
  if (call_.frees_saved && !is_grad_enabled()) node_.release_saved();
  return taken;
}

Tensor FunctionContext::destination(size_t i) const {
  return i < call_.destinations.size() ? call_.destinations[i] : Tensor();
}

std::any& FunctionContext::any_data() { return node_.data_; }

void FunctionContext::throw_no_data() const {
  throw AutogradError(
      fmt::format("[{}] no value of the type that was asked for is attached. Call set_data in "
                  "forward with exactly that type.",
                  function_name(node_.info_.type)));
}

namespace detail {

void check_gradient_count(const std::type_info& type, size_t expected, size_t got) {
  LS_CHECK(expected == got, AutogradError,
           "[{}] backward takes {} gradients, but forward returned {} results. Take one per "
           "result, or a TensorList.",
           function_name(type), expected, got);
}

FunctionCall::FunctionCall(const FunctionInfo& info, FunctionInputs inputs)
    : inputs_(std::move(inputs)),
      recording_(false),
      node_(make_ref<FunctionNode>(info)),
      context_(*node_, node_.get()) {
  // The first argument may be changed in place by forward.
  if (!inputs_.empty() && inputs_[0].defined() && is_grad_enabled()) follow_base(inputs_[0]);
  for (const Tensor& input : inputs_) {
    versions_.push_back(input.defined() ? input.version() : 0);
    Edge edge = input.defined() && is_grad_enabled() ? gradient_edge(input) : Edge();
    recording_ |= static_cast<bool>(edge);
    node_->add_edge(std::move(edge));
  }
}

FunctionCall::~FunctionCall() {
  // Breaks reference cycles: the results in these lists own the node. Also after an exception.
  node_->to_save_.clear();
  node_->dirty_.clear();
  node_->non_differentiable_.clear();
}

bool FunctionCall::is_input(const Tensor& tensor) const { return contains(inputs_, tensor); }

void FunctionCall::check_marks(const FunctionResults& results) const {
  if (node_->dirty_.empty()) return;
  const std::string& function = function_name(node_->info_.type);
  for (const Tensor& dirty : node_->dirty_) {
    LS_CHECK(dirty.defined() && is_input(dirty), AutogradError,
             "[{}] mark_dirty: expected arguments of forward, got another tensor: {}.", function,
             to_string(dirty));
    const bool returned =
        std::ranges::any_of(results, [&](const Tensor* result) { return result->is_same(dirty); });
    LS_CHECK(returned, AutogradError,
             "[{}] an argument that is marked dirty is not returned: {}. Return each one that "
             "forward changes in place.",
             function, to_string(dirty));
    if (!recording_ || !is_floating(dirty.dtype())) continue;
    LS_CHECK(!contains(node_->non_differentiable_, dirty), AutogradError,
             "[{}] an argument is marked both dirty and non-differentiable: {}. Return a detached "
             "copy, or let its gradient be zero.",
             function, to_string(dirty));
    check_in_place(function, dirty);
    LS_CHECK(!dirty.is_view() || (results.size() == 1 && dirty.is_same(inputs_[0])), AutogradError,
             "[{}] a view is marked dirty: expected it to be the first tensor argument, and the "
             "only result, got {} results. Change a clone() instead.",
             function, results.size());
  }
}

void FunctionCall::count_change(const Tensor& dirty) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    // Changes through a raw pointer have not bumped the version.
    if (inputs_[i].is_same(dirty) && dirty.version() == versions_[i]) {
      return dirty.storage()->bump_version();
    }
  }
}

void FunctionCall::finish(const FunctionResults& results) {
  FunctionNode& node = *node_;
  check_marks(results);
  for (const Tensor& dirty : node.dirty_) count_change(dirty);
  for (size_t i = 0; i < results.size(); ++i) {
    const bool again = std::any_of(results.begin(), results.begin() + i, [&](const Tensor* other) {
      return other->is_same(*results[i]);
    });
    give(*results[i], again);
  }
  if (recording_) save(results);
}

void FunctionCall::give(Tensor& result, bool again) const {
  FunctionNode& node = *node_;
  if (!result.defined()) {
    node.add_output();
    node.results_.emplace_back();
    return;
  }
  node.results_.emplace_back(*result.impl());
  const bool carries =
      recording_ && is_floating(result.dtype()) && !contains(node.non_differentiable_, result);
  const bool dirty = contains(node.dirty_, result) && !again;
  if (dirty && carries) return rebase_history(result, node_);
  if (!dirty && (is_input(result) || again)) {
    const bool may_change = !recording_ && is_grad_enabled();
    result = alias(result, may_change ? ViewOrigin::kRecorded : ViewOrigin::kNoGrad);
  } else if (!dirty && result.requires_grad()) {
    // The returned tensor keeps its own history; the result gets that of this call.
    result = alias(result, std::nullopt);
  }
  if (carries) {
    set_history(*result.impl(), node_, node.add_output(*result.impl()));
  } else {
    node.add_output();
  }
}

void FunctionCall::save(const FunctionResults& results) const {
  FunctionNode& node = *node_;
  for (const Tensor& tensor : node.to_save_) {
    const auto at = std::ranges::find_if(
        results, [&](const Tensor* result) { return result->is_same(tensor); });
    // A result saved as an argument would form a reference cycle with its node.
    const bool own = tensor.defined() && at != results.end() && tensor.requires_grad();
    node.saved_.push_back(
        own ? SavedTensor::result(tensor, static_cast<uint32_t>(at - results.begin()))
            : SavedTensor::argument(tensor));
  }
}

}  // namespace detail

}  // namespace lockstep
