#include "core/cuda/graph.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/cuda/runtime.h"
#include "core/device/replay_listener.h"
#include "core/device/stream_sanitizer.h"
#include "core/memory/capture_scope.h"
#include "core/tensor/event.h"
#include "core/tensor/random_position.h"
#include "core/tensor/random_state_guard.h"

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
        memory{stream.get(), &caching_allocator(device), caching_allocator(device).create_pool()} {
    memory.position = static_cast<const RandomPosition*>(
        memory.allocator->raw_alloc(sizeof(RandomPosition), stream.get()));
    memory.draws = &draws;
    memory.listeners = &listeners;
  }
  ~State() {
    for (const auto& [on, event] : replays) {
      try {
        event.synchronize();
      } catch (const Error&) {
        // The next synchronisation reports the error as well.
      }
    }
    if (graph != nullptr) runtime.destroy_graph(stream.get().device.index, graph);
    memory.allocator->raw_delete(const_cast<RandomPosition*>(memory.position));
    memory.allocator->release_pool(memory.pool);
  }

  void write_position(const Stream& on);

  cuda::Runtime& runtime;
  const OwnedStream stream;
  ActiveCapture memory;
  CUgraphExec graph = nullptr;
  std::vector<std::pair<Stream, Event>> replays;  ///< last replay on each stream
  std::atomic<bool> draws = false;                ///< kernels of the graph read memory.position
  ReplayListeners listeners;
  RandomKey ended;  ///< state of the default generator behind the captured work

  /// Positions on their way to the device, which may be many replays behind.
  struct Sent {
    RandomPosition position = {};
    Event copied;
  };
  std::array<Sent, 64> sent;
  size_t next_sent = 0;
};

/// Queues the position at which a replay begins, and moves the thread's generator as its calls
/// would.
void CudaGraph::State::write_position(const Stream& on) {
  // A replay on another stream may still read the position of the one before.
  for (const auto& [other, event] : replays) {
    if (other != on) on.wait_event(event);
  }
  Generator& generator = default_generator();
  const RandomKey now = generator.state();
  Sent& slot = sent[next_sent++ % sent.size()];
  if (slot.copied.is_recorded()) slot.copied.synchronize();
  slot.position = position_of(now);
  runtime.copy(on, const_cast<RandomPosition*>(memory.position), &slot.position,
               sizeof(RandomPosition), Transfer::kFromCpu);
  slot.copied.record(on);
  RandomKey behind = now;
  behind.step += ended.step - memory.begun.step;
  behind.micro_batch += ended.micro_batch - memory.begun.micro_batch;
  const bool stayed =
      ended.step == memory.begun.step && ended.micro_batch == memory.begun.micro_batch;
  behind.call = stayed ? now.call + (ended.call - memory.begun.call) : ended.call;
  generator.set_state(behind);
}

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
  // Nothing is drawn before the first replay, which begins where the generator is then.
  const RandomStateGuard generator;
  state_->memory.begun = default_generator().state();
  state_->runtime.begin_capture(stream);
  try {
    const StreamGuard on_stream(stream);
    const CaptureScope scope(&state_->memory);
    work();
    state_->ended = default_generator().state();
  } catch (...) {
    state_->runtime.drop_capture(stream);
    state_->listeners.clear();
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
  if (state_->draws) state_->write_position(stream);
  state_->listeners.before_replay(stream);
  state_->runtime.launch_graph(stream, state_->graph);
  state_->listeners.after_replay(stream);
  auto& replays = state_->replays;
  const auto known = std::ranges::find(replays, stream, &std::pair<Stream, Event>::first);
  (known != replays.end() ? *known : replays.emplace_back(stream, Event())).second.record(stream);
}

PoolId CudaGraph::pool() const noexcept { return state_->memory.pool; }

}  // namespace lockstep
