// Replaces the other files of this folder if the CUDA toolkit is missing or not wanted.

#include "core/base/error.h"
#include "core/cuda/availability.h"
#include "core/cuda/device_facts.h"
#include "core/cuda/device_state.h"
#include "core/cuda/graph.h"
#include "core/cuda/hang_watch.h"
#include "core/cuda/launch.h"
#include "core/cuda/nvtx.h"
#include "core/cuda/pattern.h"
#include "core/cuda/peer.h"

namespace lockstep::cuda {

Availability availability() { return {.compiled = false, .reason = "this build has no CUDA"}; }

void fill_pattern(const Stream&, void*, size_t, uint64_t) {
  throw DeviceError("[fill_pattern] this build has no CUDA. Build where nvcc is found.");
}

void count_wrong(const Stream&, const void*, size_t, uint64_t, uint64_t*) {
  throw DeviceError("[count_wrong] this build has no CUDA. Build where nvcc is found.");
}

void launch(const Stream&, const void*, const char*, const LaunchShape&,
            std::span<const std::byte>) {
  throw DeviceError("[launch] this build has no CUDA. Build where nvcc is found.");
}

void unload(std::span<const void* const>) noexcept {}

DeviceFacts device_facts(int) {
  throw DeviceError("[device_facts] this build has no CUDA. Build where nvcc is found.");
}

DeviceState device_state(int) { return {.reason = "this build has no CUDA"}; }

bool reaches_peer(int, int) { return false; }

void open_peer(int, int) {
  throw DeviceError("[open_peer] this build has no CUDA. Build where nvcc is found.");
}

struct HangWatch::State {};

HangWatch::HangWatch(Device, std::chrono::milliseconds, Told) {
  throw DeviceError("[HangWatch] this build has no CUDA. Build where nvcc is found.");
}
HangWatch::~HangWatch() = default;
uint64_t HangWatch::looks() const { return 0; }

const SpanMirror* nvtx_mirror() { return nullptr; }

}  // namespace lockstep::cuda

namespace lockstep {

struct CudaGraph::State {};

CudaGraph::CudaGraph(Device) {
  throw DeviceError("[CudaGraph] this build has no CUDA. Build where nvcc is found.");
}
CudaGraph::~CudaGraph() = default;
void CudaGraph::capture(const std::function<void()>&) {}
bool CudaGraph::is_captured() const noexcept { return false; }
void CudaGraph::replay() {}
PoolId CudaGraph::pool() const noexcept { return 0; }

}  // namespace lockstep
