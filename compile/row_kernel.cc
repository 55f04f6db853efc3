#include "compile/row_kernel.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "compile/fusion.h"
#include "compile/interpreter.h"
#include "compile/loop_group.h"
#include "compile/native/kernel_builder.h"
#include "core/base/check.h"
#include "core/device/active_capture.h"
#include "core/device/kernel_scope.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"

namespace lockstep::compiler {

namespace {

using Place = RowProgram::Place;
using Use = RowProgram::Use;

/// The kernel of an operator along rows, with the node's values in its order.
struct NodeRows {
  struct Result {
    ValueId value;  ///< kAbsent if the node leaves it out
    DType dtype;
    bool is_number;  ///< one element for each row
  };
  std::shared_ptr<const RowStep> step;
  std::vector<std::optional<Result>> results;
  std::vector<ValueId> operands;
};

/// Rows of zeros of an operand, as many as show which dimension is which.
constexpr int64_t kFew = 2;

std::optional<NodeRows> row_step_of(const Graph& graph, const Node& node, const RowPlaces& places) {
  std::vector<Tensor> tensors;
  std::vector<ValueId> ids;
  for (const NodeArgument& argument : node.arguments) {
    for (const ValueId id : argument.values) {
      ids.push_back(id);
      tensors.emplace_back();
      if (id == kAbsent) continue;
      const ValueType type = type_of_rows(type_of(graph, id), *places.find(graph, id), kFew);
      tensors.back() = zeros(type.sizes, {type.dtype, type.device});
    }
  }
  const NoGradGuard no_grad;
  const AutocastStateGuard no_autocast({});
  std::vector<Value> returned;
  std::optional<RowCapture::Taken> taken;
  {
    RowCapture capture;
    returned = call(*node.op, node.arguments, tensors);
    taken = capture.taken();
  }
  if (!taken) return std::nullopt;
  NodeRows rows{.step = taken->step, .results = {}, .operands = {}};
  for (const void* const address : taken->operands) {
    const auto found = std::ranges::find_if(
        tensors, [&](const Tensor& t) { return t.defined() && t.data() == address; });
    if (address != nullptr && found == tensors.end()) return std::nullopt;
    rows.operands.push_back(address == nullptr ? kAbsent
                                               : ids[static_cast<size_t>(found - tensors.begin())]);
  }
  for (const void* const address : taken->results) {
    if (address == nullptr) {
      rows.results.emplace_back();
      continue;
    }
    size_t at = 0;
    while (at < returned.size() &&
           !(returned[at].is_tensor() && returned[at].tensor().data() == address)) {
      ++at;
    }
    if (at == returned.size() || at >= node.results.size()) return std::nullopt;
    const Tensor& result = returned[at].tensor();
    rows.results.emplace_back(
        NodeRows::Result{node.results[at], result.dtype(), result.numel() == kFew});
  }
  return rows;
}

/// Whether elements of two tensors of one type have the same bits; looks at the first ones alone.
bool same_bits(const Tensor& a, const Tensor& b) {
  constexpr int64_t kCompared = 16384;
  const int64_t count = std::min(a.numel(), kCompared);
  const auto first = [&](const Tensor& tensor) {
    return as_strided(tensor, {count}, {1}, tensor.storage_offset()).to(kCPU);
  };
  const Tensor left = first(a), right = first(b);
  return std::memcmp(left.data(), right.data(), static_cast<size_t>(count) * size_of(a.dtype())) ==
         0;
}

}  // namespace

bool has_row_step(const Graph& graph, const Node& node, const RowPlaces& places) {
  return row_step_of(graph, node, places).has_value();
}

RowKernelProgram::RowKernelProgram(const Rows& rows) {
  program_.rows = rows.count;
  program_.length = rows.length;
}

int32_t RowKernelProgram::slot_of(const Graph& graph, ValueId id, const RowPlaces& places) {
  if (id == kAbsent) return -1;
  for (const std::vector<Bound>* const known : {&made_, &operands_}) {
    const auto found = std::ranges::find(*known, id, &Bound::value);
    if (found != known->end()) return static_cast<int32_t>(found->slot);
  }
  const ValueType& type = type_of(graph, id);
  Place place = Place::kRow;
  switch (*places.find(graph, id)) {
    case RowPlace::kRow:
      break;
    case RowPlace::kShared:
      place = count_elements(type.sizes) == 1 ? Place::kOne : Place::kShared;
      break;
    default:
      place = Place::kNumber;
  }
  operands_.push_back({slots(), id});
  program_.slots.push_back({.place = place, .use = Use::kOperand, .dtype = type.dtype});
  return static_cast<int32_t>(slots()) - 1;
}

int32_t RowKernelProgram::add_made(const Graph& graph, ValueId id, const RowPlaces& places,
                                   const std::vector<bool>& is_kept) {
  const bool is_row = *places.find(graph, id) == RowPlace::kRow;
  const bool has_memory = is_kept[static_cast<size_t>(id)];
  made_.push_back({slots(), id});
  if (has_memory) results_.push_back(made_.back());
  program_.slots.push_back({.place = is_row ? Place::kRow : Place::kNumber,
                            .use = has_memory ? Use::kResult : Use::kScratch,
                            .dtype = type_of(graph, id).dtype});
  return static_cast<int32_t>(slots()) - 1;
}

bool RowKernelProgram::add(const Graph& graph, const Node& node, const RowPlaces& places,
                           const std::vector<bool>& is_kept) {
  device_ = device_of(graph, node);
  RowProgram::Step step;
  if (!works_along_dims(node)) {
    std::optional<NodeLoop> loop = loop_of(graph, node);
    if (!loop) return false;
    step.loop = std::move(loop->loop);
    for (const ValueId id : loop->operands) step.operands.push_back(slot_of(graph, id, places));
    step.results.push_back(add_made(graph, node.results[0], places, is_kept));
  } else {
    const std::optional<NodeRows> rows = row_step_of(graph, node, places);
    if (!rows) return false;
    step.row = rows->step;
    for (const ValueId id : rows->operands) step.operands.push_back(slot_of(graph, id, places));
    for (const std::optional<NodeRows::Result>& result : rows->results) {
      if (!result) {
        step.results.push_back(-1);
      } else if (result->value != kAbsent) {
        step.results.push_back(add_made(graph, result->value, places, is_kept));
      } else {
        step.results.push_back(static_cast<int32_t>(slots()));
        program_.slots.push_back({.place = result->is_number ? Place::kNumber : Place::kRow,
                                  .use = Use::kScratch,
                                  .dtype = result->dtype});
      }
    }
  }
  program_.steps.push_back(std::move(step));
  return true;
}

std::unique_ptr<const RowPlan> RowKernelProgram::plan() const {
  const KernelScope on_device(device_);
  return loop_backend(device_.type)->plan_rows(program_);
}

RowKernelGroup::RowKernelGroup(const Graph& graph, std::span<const Node> nodes,
                               const std::vector<bool>& is_read_later, const RowKernelGroup* alike)
    : program_(rows_of_group(graph, nodes)), device_(device_of(graph, nodes[0])) {
  RowPlaces places(rows_of_group(graph, nodes));
  for (const Node& node : nodes) {
    LS_CHECK(places.add(graph, node) && program_.add(graph, node, places, is_read_later), Error,
             "[compile] {} cannot be part of a fused group here.", node.op->name());
    names_ += (names_.empty() ? "" : ", ") + node.op->name();
  }
  plan_ = program_.plan();
  for (const auto& result : program_.results()) {
    result_types_.push_back(type_of(graph, result.value));
  }
  Graph apart = graph_of_nodes(nodes, program_.operands(), program_.results(),
                               [&](ValueId id) { return type_of(graph, id); });
  apart_ = std::make_shared<Interpreter>(fuse_pointwise(std::move(apart)));
  if (alike == nullptr || alike->kernel_.pending() == nullptr || plan_ == nullptr) return;
  const KernelScope on_device(device_);
  if (plan_->source().text == alike->kernel_.pending()->source().text) kernel_ = alike->kernel_;
}

RowKernelGroup::~RowKernelGroup() = default;

void RowKernelGroup::request_kernel() {
  if (kernel_.pending() != nullptr || plan_ == nullptr) return;
  const KernelScope on_device(device_);
  LoopSource source = plan_->source();
  kernel_.request({.text = std::move(source.text),
                   .flags = std::move(source.flags),
                   .what = "rows of " + names_,
                   .compiler = loop_backend(device_.type)->compiler});
}

std::vector<Tensor> RowKernelGroup::run_apart(const std::vector<Tensor>& values) const {
  std::vector<Tensor> inputs;
  for (const auto& operand : program_.operands()) {
    inputs.push_back(values[static_cast<size_t>(operand.value)]);
  }
  return apart_->run(std::move(inputs));
}

std::vector<Tensor> RowKernelGroup::run_kernel(const std::vector<Tensor>& values,
                                               LoopKernel kernel) const {
  std::vector<void*> memory(program_.slots(), nullptr);
  for (const auto& operand : program_.operands()) {
    memory[operand.slot] = values[static_cast<size_t>(operand.value)].data();
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < result_types_.size(); ++i) {
    const Tensor& place = values[static_cast<size_t>(program_.results()[i].value)];
    results.push_back(place.defined() ? place : make_tensor(result_types_[i]));
    memory[program_.results()[i].slot] = results.back().data();
  }
  const KernelScope on_device(device_);
  if (!plan_->run(memory, kernel)) return {};
  return results;
}

KernelTrial RowKernelGroup::attempt(const std::vector<Tensor>& values, LoopKernel kernel) const {
  if (active_capture() != nullptr) return KernelTrial::kNone;  // a capture cannot be waited for
  const std::vector<Tensor> results = run_kernel(values, kernel);
  if (results.empty()) return KernelTrial::kNone;
  const std::vector<Tensor> expected = run_apart(values);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!same_bits(results[i], expected[i])) return KernelTrial::kOtherBits;
  }
  return KernelTrial::kFaster;  // one pass over memory instead of several
}

void RowKernelGroup::run(std::vector<Tensor>& values) const {
  const LoopKernel kernel = kernel_.choose([&](LoopKernel made) { return attempt(values, made); });
  std::vector<Tensor> results;
  if (kernel != nullptr) results = run_kernel(values, kernel);
  if (results.empty()) results = run_apart(values);
  for (size_t i = 0; i < results.size(); ++i) {
    values[static_cast<size_t>(program_.results()[i].value)] = std::move(results[i]);
  }
}

}  // namespace lockstep::compiler
