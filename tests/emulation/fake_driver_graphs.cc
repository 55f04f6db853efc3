// The functions of FakeDriver's table for graphs. Captured work is replayed in the order of its
// recording.

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "tests/emulation/fake_driver.h"
#include "tests/emulation/fake_driver_entry.h"
#include "tests/emulation/queued_work.h"

namespace lockstep::cuda {

/// Implementations of the table's functions; each takes the lock on entry.
struct FakeDriver::GraphCalls {
  static CUresult begin_capture(CUstream handle, CUstreamCaptureMode mode) {
    LS_FAKE_DEVICE("cuStreamBeginCapture");
    Stream* const stream = fake.find(handle);
    if (stream == nullptr || handle == CU_STREAM_LEGACY) return fake.refuse("captures no stream");
    if (stream->capture != nullptr) return fake.refuse("captures a stream twice");
    if (mode != CU_STREAM_CAPTURE_MODE_RELAXED) return fake.refuse("a capture that is not relaxed");
    stream->capture = std::make_shared<Capture>();
    stream->capture->origin = stream;
    stream->after.clear();
    return CUDA_SUCCESS;
  }
  static CUresult end_capture(CUstream handle, CUgraph* graph) {
    LS_FAKE_DEVICE("cuStreamEndCapture");
    Stream* const origin = fake.find(handle);
    *graph = nullptr;
    if (origin == nullptr || origin->capture == nullptr || origin->capture->origin != origin) {
      return fake.refuse("ends a capture that did not begin there");
    }
    const std::shared_ptr<Capture> capture = origin->capture;
    const std::map<Stream*, size_t> joined = origin->after;
    capture->over = true;
    for (auto& [key, stream] : fake.streams_) {
      if (stream->capture == capture) stream->capture = nullptr;
    }
    if (capture->failed) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (const auto& [stream, position] : capture->done_by) {
      const auto found = joined.find(stream);
      if (position != 0 && (found == joined.end() || found->second < position)) {
        return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
      }
    }
    auto made = std::make_unique<Work>(capture->work);
    *graph = reinterpret_cast<CUgraph>(made.get());
    Work* const key = made.get();
    fake.graphs_.emplace(key, std::move(made));
    return CUDA_SUCCESS;
  }
  static CUresult is_capturing(CUstream handle, CUstreamCaptureStatus* status) {
    LS_FAKE_DEVICE("cuStreamIsCapturing");
    const Stream* const stream = fake.find(handle);
    if (stream == nullptr) return fake.refuse("asks whether no stream captures");
    *status = stream->capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->failed  ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                         : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
  }
  static CUresult instantiate(CUgraphExec* executable, CUgraph graph, unsigned long long) {
    LS_FAKE_DEVICE("cuGraphInstantiate");
    const auto found = fake.graphs_.find(reinterpret_cast<Work*>(graph));
    if (found == fake.graphs_.end()) return fake.refuse("instantiates no graph");
    auto made = std::make_shared<Work>(*found->second);
    *executable = reinterpret_cast<CUgraphExec>(made.get());
    Work* const key = made.get();
    fake.executables_.emplace(key, std::move(made));
    return CUDA_SUCCESS;
  }
  static CUresult launch_graph(CUgraphExec executable, CUstream handle) {
    LS_FAKE_DEVICE("cuGraphLaunch");
    Stream* const stream = fake.find(handle);
    const auto found = fake.executables_.find(reinterpret_cast<Work*>(executable));
    if (stream == nullptr || found == fake.executables_.end()) {
      return fake.refuse("launches no graph, or on no stream");
    }
    if (stream->capture != nullptr) return fake.refuse("launches a graph in a capture");
    emulation::note_queued("graph");
    const auto replay = [work = found->second] {
      std::ranges::for_each(*work, [](auto& each) { each(); });
    };
    put(*stream, replay, true);
    return CUDA_SUCCESS;
  }
  static CUresult destroy_graph(CUgraph graph) {
    LS_FAKE("cuGraphDestroy");
    if (fake.graphs_.erase(reinterpret_cast<Work*>(graph)) == 0) {
      return fake.refuse("destroys no graph");
    }
    return CUDA_SUCCESS;
  }
  static CUresult destroy_executable(CUgraphExec executable) {
    LS_FAKE("cuGraphExecDestroy");
    if (fake.executables_.erase(reinterpret_cast<Work*>(executable)) == 0) {
      return fake.refuse("destroys no graph");
    }
    return CUDA_SUCCESS;
  }
};

void FakeDriver::add_graphs_to(Driver& driver) {
  driver.cuStreamBeginCapture = &GraphCalls::begin_capture;
  driver.cuStreamEndCapture = &GraphCalls::end_capture;
  driver.cuStreamIsCapturing = &GraphCalls::is_capturing;
  driver.cuGraphInstantiate = &GraphCalls::instantiate;
  driver.cuGraphLaunch = &GraphCalls::launch_graph;
  driver.cuGraphDestroy = &GraphCalls::destroy_graph;
  driver.cuGraphExecDestroy = &GraphCalls::destroy_executable;
}

}  // namespace lockstep::cuda
