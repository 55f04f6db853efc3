#include "compile/captured_run.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "compile/loop_group.h"
#include "core/base/error.h"
#include "core/device/active_capture.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"

namespace lockstep::compiler {

namespace {

/// Whether one of the graph's first outputs is a view of an input.
bool returns_view(const Graph& graph, size_t outputs) {
  std::vector<ValueId> memory(graph.values.size());
  std::iota(memory.begin(), memory.end(), 0);
  follow_views(graph.nodes, memory);
  return std::any_of(graph.outputs.begin(),
                     graph.outputs.begin() + static_cast<std::ptrdiff_t>(outputs), [&](ValueId id) {
                       return id != kAbsent && memory[static_cast<size_t>(id)] != id &&
                              std::ranges::find(graph.inputs, memory[static_cast<size_t>(id)]) !=
                                  graph.inputs.end();
                     });
}

/// Whether the input is another of `inputs` as it is: a gradient's place, or a weight.
bool is_among(const Tensor& tensor, const std::vector<Tensor>& inputs) {
  return std::ranges::any_of(inputs, [&](const Tensor& each) { return each.is_same(tensor); });
}

}  // namespace

CapturedRun::Counts CapturedRun::counts_of(const Tensor& tensor) {
  return {tensor.impl()->use_count(), tensor.storage()->use_count()};
}

CapturedRun::CapturedRun(const Interpreter& graph, Copies copies)
    : graph_(graph), copies_(std::move(copies)) {
  const Graph& of = graph.graph();
  const auto is_of_gpu = [](const ValueType& type) {
    return type.device.type == DeviceType::kCUDA;
  };
  const auto found = std::ranges::find_if(of.values, is_of_gpu);
  const MutexLock lock(mutex_);
  if (found == of.values.end()) {
    refusal_ = "it has no tensor of a GPU";
  } else if (!of.writes.empty()) {
    refusal_ = "it changes an argument";
  } else if (!copies_.may_be_views && returns_view(of, copies_.outputs)) {
    refusal_ = "it returns a view of an argument";
  } else {
    device_ = found->device;
  }
}

CapturedRun::~CapturedRun() {
  const MutexLock lock(mutex_);
  finish();
}

std::optional<std::vector<Tensor>> CapturedRun::run(const std::vector<Tensor>& inputs) {
  if (active_capture() != nullptr) return std::nullopt;
  const MutexLock lock(mutex_);
  if (!refusal_.empty()) return std::nullopt;
  const Stream stream = current_stream(device_);
  std::vector<const void*> fixed = fixed_places(inputs);
  if (captured_ && fixed != fixed_) drop();
  if (!captured_) {
    if (!may_capture(fixed)) return std::nullopt;
    capture(inputs);
    if (!captured_) return std::nullopt;
    stream_ = stream;
  }
  // On another stream a replay could pass work that still reads what the last one kept.
  if (stream != stream_ || is_held()) return std::nullopt;
  return replay(inputs);
}

std::string CapturedRun::refusal() const {
  const MutexLock lock(mutex_);
  return refusal_;
}

std::vector<const void*> CapturedRun::fixed_places(const std::vector<Tensor>& inputs) const {
  std::vector<const void*> fixed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!copies_.inputs[i]) fixed.push_back(inputs[i].data());
  }
  return fixed;
}

bool CapturedRun::may_capture(const std::vector<const void*>& fixed) {
  const bool stands_still = fixed == fixed_;
  fixed_ = fixed;
  ++calls_;
  // A kernel that is there later would not be part of the graph.
  return calls_ > kWarmUps && stands_still &&
         std::ranges::all_of(graph_.kernels(),
                             [](const GroupKernel* kernel) { return kernel->is_settled(); });
}

void CapturedRun::capture(const std::vector<Tensor>& inputs) {
  const NoGradGuard no_grad;
  std::vector<Tensor> given = inputs, made;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (copies_.inputs[i]) given[i] = empty_like(inputs[i]);
  }
  auto captured = std::make_unique<CudaGraph>(device_);
  try {
    captured->capture([&] { made = graph_.run(given); });
  } catch (const Error& error) {
    drop();
    refusal_ = error.what();
    return;
  }
  captured_ = std::move(captured);
  // Who saved what stands still may see that nobody else holds it, so it is not held here.
  std::vector<Ref<Storage>> fixed;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!copies_.inputs[i]) fixed.push_back(std::exchange(given[i], Tensor()).storage());
  }
  std::vector<size_t> own;
  for (size_t i = copies_.outputs; i < made.size(); ++i) {
    const bool is_own =
        made[i].defined() && std::ranges::find(fixed, made[i].storage()) == fixed.end();
    if (is_own) own.push_back(i);
  }
  fixed.clear();
  kept_.clear();
  for (const size_t i : own) kept_.push_back({i, counts_of(made[i])});
  inputs_ = std::move(given);
  outputs_ = std::move(made);
}

void CapturedRun::finish() noexcept {
  try {
    if (replayed_.is_recorded()) replayed_.synchronize();
  } catch (const Error&) {
    // The next synchronisation reports the error as well.
  }
}

void CapturedRun::drop() {
  finish();
  captured_.reset();
  inputs_.clear();
  outputs_.clear();
  calls_ = 0;
  if (++captures_ == kMostCaptures) refusal_ = "what it reads besides its arguments moves";
}

bool CapturedRun::is_held() const {
  for (const Kept& kept : kept_) {
    if (counts_of(outputs_[kept.output]) != kept.alone) return true;
  }
  return false;
}

std::vector<Tensor> CapturedRun::replay(const std::vector<Tensor>& inputs) {
  const NoGradGuard no_grad;
  const AutocastStateGuard no_autocast({});
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (copies_.inputs[i]) copy_(inputs_[i], inputs[i]);
  }
  captured_->replay();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Tensor& output = outputs_[i];
    const bool stays = i >= copies_.outputs || !output.defined() || is_among(output, inputs);
    outputs.push_back(stays ? output : clone(output, MemoryFormat::kPreserve));
  }
  replayed_.record(stream_);
  return outputs;
}

}  // namespace lockstep::compiler
