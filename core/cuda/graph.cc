#include "core/cuda/graph.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/cuda/runtime.h"
#include "core/device/stream_sanitizer.h"
#include "core/memory/capture_scope.h"
#include "core/tensor/event.h"

namespace lockstep {

namespace {

cuda::Runtime& cuda_runtime(Device device) {
  LS_CHECK(device.type == DeviceType::kCUDA, DeviceError,
           "[CudaGraph] expected a cuda device, got {}.", to_string(device));
  return static_cast<cuda::Runtime&>(require_runtime(device));
}

}  // namespace

struct CudaGraph::State {
  explicit State(Device device)
      : runtime(cuda_runtime(device)),
        stream(device),
        memory{stream.get(), &caching_allocator(device), caching_allocator(device).create_pool()} {}
  ~State() {
    for (const auto& [on, event] : replays) {
      try {
        event.synchronize();
      } catch (const Error&) {
        // The next synchronisation reports the error as well.
      }
    }
    if (graph != nullptr) runtime.destroy_graph(stream.get().device.index, graph);
    memory.allocator->release_pool(memory.pool);
  }

  cuda::Runtime& runtime;
  const OwnedStream stream;
  const ActiveCapture memory;
  CUgraphExec graph = nullptr;
  std::vector<std::pair<Stream, Event>> replays;  ///< last replay on each stream
};

CudaGraph::CudaGraph(Device device) : state_(std::make_unique<State>(device)) {}
CudaGraph::~CudaGraph() = default;

void CudaGraph::capture(const std::function<void()>& work) {
  LS_CHECK(
      !is_captured(), DeviceError,
      "[capture] this graph has been captured: expected a new one. Make a CudaGraph for each.");
  require_no_capture("capture", "graphs are not nested");
  const Stream stream = state_->stream.get();
  // Replays read memory written before the capture; this orders the two for the stream sanitizer,
  // too.
  stream.wait_stream(current_stream(stream.device));
  state_->runtime.begin_capture(stream);
  try {
    const StreamGuard on_stream(stream);
    const CaptureScope scope(&state_->memory);
    work();
  } catch (...) {
    state_->runtime.drop_capture(stream);
    throw;
  }
  state_->graph = state_->runtime.end_capture(stream);
  if (stream_sanitizer::enabled()) stream_sanitizer::on_stream_done(stream);
}

bool CudaGraph::is_captured() const noexcept { return state_->graph != nullptr; }

void CudaGraph::replay() {
  LS_CHECK(is_captured(), DeviceError,
           "[replay] there is nothing to replay: expected a graph that capture() has recorded.");
  require_no_capture("replay", "graphs are not nested");
  const Stream stream = current_stream(state_->stream.get().device);
  state_->runtime.launch_graph(stream, state_->graph);
  auto& replays = state_->replays;
  const auto known = std::ranges::find(replays, stream, &std::pair<Stream, Event>::first);
  (known != replays.end() ? *known : replays.emplace_back(stream, Event())).second.record(stream);
}

PoolId CudaGraph::pool() const noexcept { return state_->memory.pool; }

}  // namespace lockstep
