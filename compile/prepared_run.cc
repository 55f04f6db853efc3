#include "compile/prepared_run.h"

#include <algorithm>
#include <cstring>

#include "compile/fusion.h"
#include "compile/graph/moved_graph.h"
#include "core/base/error.h"
#include "core/device/kernel_recorder.h"
#include "core/dispatch/dispatch_trace.h"
#include "core/dispatch/observer.h"
#include "core/tensor/generator.h"
#include "core/tensor/random_state_guard.h"

namespace lockstep::compiler {

namespace {

constexpr Device kHostDevice{DeviceType::kHost, 0};

int64_t size_in_bytes(DType dtype) { return static_cast<int64_t>(size_of(dtype)); }

/// Elements from the first to the last, of strides that are not negative.
int64_t extent_of(IntList sizes, IntList strides) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return last + 1;
}
int64_t extent_of(const Tensor& tensor) { return extent_of(tensor.sizes(), tensor.strides()); }

int64_t bytes_of(const Tensor& tensor, int64_t elements) {
  return elements * size_in_bytes(tensor.dtype());
}

/// A tensor on the host device with the same elements in the same places.
Tensor on_host(const Tensor& tensor) {
  const int64_t extent = extent_of(tensor);
  const Tensor all = empty_tensor(IntList(&extent, 1), tensor.dtype(), kHostDevice);
  if (extent > 0) {
    std::memcpy(all.data(), tensor.data(), static_cast<size_t>(bytes_of(tensor, extent)));
  }
  return alias_tensor(all, tensor.sizes(), tensor.strides(), 0, tensor.dtype(), /*relate=*/false);
}

/// The graph on the host device, whose outputs are all values that anything outside of a group
/// reads. Groups are made anew: those of rows are for large tensors.
Graph on_host(Graph graph, const std::vector<ValueId>& outputs) {
  graph = moved_graph(std::move(graph), kHostDevice);
  for (ValueType& type : graph.values) type.device = kHostDevice;
  graph = fuse_pointwise(std::move(graph), /*least=*/2);
  std::vector<bool> is_read(graph.values.size());
  for (const ValueId id : outputs) {
    if (id != kAbsent) is_read[static_cast<size_t>(id)] = true;
  }
  std::vector<int32_t> group(graph.values.size(), -1);
  for (const Node& node : graph.nodes) {
    each_read(node, [&](ValueId id) {
      const auto at = static_cast<size_t>(id);
      is_read[at] = is_read[at] || group[at] == -1 || group[at] != node.group;
    });
    for (const ValueId id : node.results) {
      if (id != kAbsent) group[static_cast<size_t>(id)] = node.group;
    }
  }
  graph.outputs.clear();
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.results) {
      if (id != kAbsent && (node.group == -1 || is_read[static_cast<size_t>(id)])) {
        graph.outputs.push_back(id);
      }
    }
  }
  return graph;
}

/// The first of the tensors that has the memory of another one.
std::optional<size_t> find_memory(const std::vector<Tensor>& tensors, const Tensor& of) {
  const auto found = std::ranges::find_if(
      tensors, [&](const Tensor& each) { return each.storage() == of.storage(); });
  if (found == tensors.end()) return std::nullopt;
  return static_cast<size_t>(found - tensors.begin());
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  const int64_t extent = extent_of(a);
  return ValueType::of(a) == ValueType::of(b) &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(bytes_of(a, extent))) == 0;
}

}  // namespace

PreparedRun::~PreparedRun() = default;

std::unique_ptr<PreparedRun> PreparedRun::make(const Interpreter& interpreter) {
  const Graph& graph = interpreter.graph();
  if (!graph.writes.empty() || graph.nodes.size() < 2) return nullptr;
  int64_t bytes = 0;
  for (const ValueType& type : graph.values) {
    if (type.device != kCPU) return nullptr;
    bytes += count_elements(type.sizes) * size_in_bytes(type.dtype);
  }
  // Other operators do more than their kernel, or allocate what they make.
  const auto is_kernel = [](const Node& node) {
    return node.op->kind() == OpKind::kStructured || node.op->kind() == OpKind::kView;
  };
  if (bytes > kMostBytes || !std::ranges::all_of(graph.nodes, is_kernel)) return nullptr;
  return std::unique_ptr<PreparedRun>(new PreparedRun(interpreter));
}

std::optional<std::vector<Tensor>> PreparedRun::run(const std::vector<Tensor>& inputs) {
  if (innermost_observer() != nullptr || traces_dispatch() ||
      !std::ranges::all_of(inputs, &Tensor::defined)) {
    return std::nullopt;
  }
  if (busy_.test_and_set(std::memory_order_acquire)) return std::nullopt;
  struct Freed {
    std::atomic_flag& flag;
    ~Freed() { flag.clear(std::memory_order_release); }
  } freed{busy_};
  switch (state_) {
    case State::kReady:
      return replay(inputs);
    case State::kNew:
      state_ = State::kSeen;
      return std::nullopt;
    case State::kSeen:
      state_ = State::kRefused;
      if (!prepare(inputs)) return std::nullopt;
      return try_beside(inputs);
    default:
      return std::nullopt;
  }
}

struct PreparedRun::Recording {
  std::vector<ValueId> inputs;
  std::vector<Tensor> given;     ///< the inputs, as copies
  std::vector<Tensor> made;      ///< all values that are kept
  std::vector<Tensor> by_value;  ///< of both
};

bool PreparedRun::prepare(const std::vector<Tensor>& inputs) {
  Recording recording;
  const RandomStateGuard others_draw_the_same;
  const DefaultDeviceGuard on_device(kHostDevice);
  try {
    for (const Tensor& input : inputs) recording.given.push_back(on_host(input));
    const Interpreter interpreter(on_host(graph_.graph(), graph_.graph().outputs), {});
    KernelRecorder recorder;
    recording.made = interpreter.run(recording.given);
    kernels_ = recorder.finish();
    const Graph& graph = interpreter.graph();
    recording.inputs = graph.inputs;
    recording.by_value.resize(graph.values.size());
    const auto set = [&](const std::vector<ValueId>& ids, const std::vector<Tensor>& tensors) {
      for (size_t i = 0; i < ids.size(); ++i) {
        recording.by_value[static_cast<size_t>(ids[i])] = tensors[i];
      }
    };
    set(graph.outputs, recording.made);
    set(graph.inputs, recording.given);
  } catch (const Error&) {
    return false;
  }
  if (!std::ranges::all_of(recording.made, &Tensor::defined)) return false;
  if (!place_outputs(recording)) return false;
  for (const Tensor& each : recording.made) {
    if (!find_memory(recording.given, each) && !find_memory(kept_, each)) kept_.push_back(each);
  }
  if (!find_addresses(recording)) return false;
  // What no recorded call writes shows when the record is tried.
  for (const Tensor& each : kept_) {
    std::memset(each.storage()->data(), 0xff, each.storage()->bytes());
  }
  kept_.erase(kept_.begin(), kept_.begin() + std::ssize(roots_));
  return true;
}

bool PreparedRun::place_outputs(const Recording& recording) {
  for (const ValueId id : graph_.graph().outputs) {
    Output& output = outputs_.emplace_back();
    if (id == kAbsent) continue;
    const Tensor& tensor = recording.by_value[static_cast<size_t>(id)];
    output.type = type_of(graph_.graph(), id);
    output.offset = tensor.storage_offset();
    if (const auto same = std::ranges::find(recording.inputs, id); same != recording.inputs.end()) {
      output.kind = Output::Kind::kInput;
      output.of = static_cast<size_t>(same - recording.inputs.begin());
      continue;
    }
    if (const auto input = find_memory(recording.given, tensor)) {
      output.kind = Output::Kind::kViewOfInput;
      output.of = *input;
      continue;
    }
    if (!find_memory(kept_, tensor)) {
      const Tensor& whole = recording.made[*find_memory(recording.made, tensor)];
      if (whole.storage_offset() != 0 || extent_of(whole) != whole.numel()) return false;
      kept_.push_back(whole);
      roots_.push_back(ValueType::of(whole));
    }
    output.of = *find_memory(kept_, tensor);
    output.kind =
        tensor.is_same(kept_[output.of]) ? Output::Kind::kRoot : Output::Kind::kViewOfRoot;
  }
  return true;
}

bool PreparedRun::find_addresses(const Recording& recording) {
  bool found_all = true;
  const auto find = [&](const TensorArg& argument, bool /*written*/) {
    const auto* const at = static_cast<const std::byte*>(argument.address);
    const int64_t bytes =
        extent_of(argument.sizes(), argument.strides()) * size_in_bytes(argument.dtype);
    const auto offset_in = [&](const Tensor& tensor) {
      return at - static_cast<const std::byte*>(tensor.storage()->data());
    };
    const auto lies_in = [&](const Tensor& tensor) {
      const int64_t offset = offset_in(tensor);
      return offset >= 0 && offset + bytes <= static_cast<int64_t>(tensor.storage()->bytes());
    };
    // The record is ours, and its calls are run by us alone.
    void** const address = &const_cast<TensorArg&>(argument).address;
    const auto input = std::ranges::find_if(recording.given, lies_in);
    if (input != recording.given.end()) {
      const auto owner = static_cast<size_t>(input - recording.given.begin());
      return of_inputs_.push_back({address, owner, offset_in(*input)});
    }
    const auto own = std::ranges::find_if(kept_, lies_in);
    const auto owner = static_cast<size_t>(own - kept_.begin());
    if (owner < roots_.size()) return of_roots_.push_back({address, owner, offset_in(*own)});
    found_all = found_all && (own != kept_.end() || argument.numel == 0);
  };
  for (const std::unique_ptr<QueuedKernel>& kernel : kernels_) {
    programs_.push_back(dynamic_cast<QueuedProgram*>(kernel.get()));
    // Operators copy what their kernel cannot take to memory that others have afterwards.
    if (programs_.back() == nullptr && kernel->op().name() == "copy") return false;
    kernel->each_access(find);
  }
  return found_all;
}

std::vector<Tensor> PreparedRun::try_beside(const std::vector<Tensor>& inputs) {
  const RandomKey state = default_generator().state();
  std::vector<Tensor> expected = graph_.run(inputs);
  const RandomKey behind = default_generator().state();
  default_generator().set_state(state);
  try {
    const std::vector<Tensor> got = replay(inputs);
    const RandomKey reached = default_generator().state();
    if (std::ranges::equal(got, expected, &same_bytes) && reached == behind) {
      state_ = State::kReady;
      is_ready_.store(true, std::memory_order_relaxed);
    }
  } catch (const Error&) {
    // The graph runs as before.
  }
  default_generator().set_state(behind);
  return expected;
}

std::vector<Tensor> PreparedRun::replay(const std::vector<Tensor>& inputs) {
  SmallVector<Tensor, 8> roots;
  for (const ValueType& root : roots_) {
    roots.push_back(empty_strided_tensor(root.sizes, root.strides, root.dtype, kCPU));
  }
  for (const Patch& patch : of_inputs_) {
    *patch.address = static_cast<std::byte*>(inputs[patch.owner].data()) + patch.offset;
  }
  for (const Patch& patch : of_roots_) {
    *patch.address = static_cast<std::byte*>(roots[patch.owner].data()) + patch.offset;
  }
  for (size_t i = 0; i < kernels_.size(); ++i) {
    QueuedKernel& kernel = *kernels_[i];
    if (programs_[i] != nullptr) {
      programs_[i]->draw_anew();
    } else if (kernel.random()) {
      kernel.set_random(default_generator().next_call());
    }
    run_here(kernel);
  }
  std::vector<Tensor> results;
  results.reserve(outputs_.size());
  const auto view_of = [](const Tensor& of, const Output& output, int64_t begin) {
    return alias_tensor(of, output.type.sizes, output.type.strides, begin + output.offset,
                        output.type.dtype, /*relate=*/false);
  };
  for (const Output& output : outputs_) {
    switch (output.kind) {
      case Output::Kind::kAbsent:
        results.emplace_back();
        break;
      case Output::Kind::kInput:
        results.push_back(inputs[output.of]);
        break;
      case Output::Kind::kViewOfInput:
        results.push_back(view_of(inputs[output.of], output, inputs[output.of].storage_offset()));
        break;
      case Output::Kind::kRoot:
        results.push_back(roots[output.of]);
        break;
      case Output::Kind::kViewOfRoot:
        results.push_back(view_of(roots[output.of], output, 0));
        break;
    }
  }
  return results;
}

}  // namespace lockstep::compiler
