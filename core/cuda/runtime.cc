#include "core/cuda/runtime.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/cuda/error.h"
#include "core/cuda/events.h"
#include "core/cuda/memory.h"
#include "core/cuda/modules.h"
#include "core/cuda/streams.h"
#include "core/device/active_capture.h"
#include "core/device/arithmetic_facts.h"

namespace lockstep::cuda {

namespace {

/// Dynamic shared memory that needs no opt-in; CUDA requires a function attribute above it.
constexpr unsigned kSharedBytesAtOnce = 48 << 10;

constexpr const char* kWaits = "it waits for the device";

EventHandle& handle(void* event) { return *static_cast<EventHandle*>(event); }

/// Whether the work is done; throws if the query failed.
bool is_done(const Driver& driver, CUresult result, const char* function) {
  if (result == CUDA_ERROR_NOT_READY) return false;
  check(driver, result, function);
  return true;
}

std::string name_of(const Context& context) {
  std::array<char, 256> name{};
  LS_CUDA(context.driver(), cuDeviceGetName, name.data(), static_cast<int>(name.size()),
          context.device());
  return name.data();
}

void CUDA_CB run_callback(void* callback) noexcept {
  const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(callback));
  (*owned)();
}

}  // namespace

/// The objects of one device.
struct Runtime::Parts {
  Parts(const Driver& driver, int index) : context(driver, index) {}

  Context context;
  Memory memory{context};
  Streams streams{context};
  Events events{context};
  StreamMarks marks{context, streams, events};
  Modules modules{context};
  Faults faults{{DeviceType::kCUDA, static_cast<int8_t>(context.index())}, memory};
  /// Held while captures begin and end, and while streams are marked: a mark must not be captured.
  Mutex capturing;
  std::atomic<int> captures = 0;  ///< captures in progress
};

struct Runtime::Loaded {
  explicit Loaded(LoadedDriver from) : driver(std::move(from)) {
    try {
      for (int i = 0; i < driver.devices; ++i) {
        parts.push_back(std::make_unique<Parts>(driver.functions, i));
      }
    } catch (const DeviceError& error) {
      parts.clear();
      driver.reason = error.what();
    }
  }

  LoadedDriver driver;
  std::vector<std::unique_ptr<Parts>> parts;
  Mutex peers_mutex;
  /// Pairs of devices that `open_each_other` has seen, the lower one first.
  std::set<std::pair<int, int>> peers LS_GUARDED_BY(peers_mutex);
};

Runtime::Runtime(Loader load) : load_(std::move(load)) {}
Runtime::~Runtime() = default;

void Runtime::set_loader(Loader load) {
  LS_CHECK(
      phase_.load(std::memory_order_acquire) == 0, DeviceError,
      "[set_driver_loader] the driver has been loaded already. Call it before the first use of "
      "a cuda device.");
  load_ = std::move(load);
}

Runtime::Loaded* Runtime::loaded() {
  const uint32_t loading = 2 * (fork_count() + 1);
  const uint32_t ready = loading + 1;
  uint32_t phase = phase_.load(std::memory_order_acquire);
  if (phase == ready) [[likely]]
    return loaded_.get();
  if (phase == 0 && phase_.compare_exchange_strong(phase, loading, std::memory_order_acquire)) {
    try {
      loaded_ = std::make_unique<Loaded>(load_());
    } catch (...) {
      phase_.store(0, std::memory_order_release);
      phase_.notify_all();
      throw;
    }
    phase_.store(ready, std::memory_order_release);
    phase_.notify_all();
    return loaded_.get();
  }
  while (phase == loading) {
    phase_.wait(loading, std::memory_order_acquire);
    phase = phase_.load(std::memory_order_acquire);
  }
  if (phase == 0) return loaded();  // the other thread's attempt to load failed
  if (phase == ready) return loaded_.get();
  // Forked process: a load that failed in the parent still holds here, for the same reason.
  return phase % 2 == 1 && loaded_->parts.empty() ? loaded_.get() : nullptr;
}

Runtime::Parts& Runtime::parts(int device) {
  Loaded* const found = loaded();
  LS_CHECK(found != nullptr, DeviceError, "[cuda] {}.", kForked);
  LS_CHECK(!found->parts.empty(), DeviceError, "[cuda] there is no cuda:{}: {}.", device,
           found->driver.reason);
  LS_CHECK(device >= 0 && static_cast<size_t>(device) < found->parts.size(), DeviceError,
           "[cuda] there is no cuda:{}: expected a device below {}.", device, found->parts.size());
  return *found->parts[static_cast<size_t>(device)];
}

Availability Runtime::availability() {
  Availability answer{.compiled = true};
  Loaded* const found = loaded();
  if (found == nullptr) {
    answer.reason = kForked;
    return answer;
  }
  answer.reason = found->driver.reason;
  const Driver& driver = found->driver.functions;
  for (const auto& parts : found->parts) {
    const double gib = static_cast<double>(parts->memory.total()) / (1 << 30);
    answer.devices.push_back(fmt::format("{}, {:.1f} GiB", name_of(parts->context), gib));
  }
  int version = 0;
  if (driver.cuDriverGetVersion != nullptr && driver.cuDriverGetVersion(&version) == CUDA_SUCCESS) {
    answer.driver = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  }
  return answer;
}

Context& Runtime::context(int device) { return parts(device).context; }

void Runtime::launch_kernel(const Stream& stream, Kernel kernel, const LaunchShape& shape,
                            const void* parameters) {
  Parts& device = parts(stream);
  launch_kernel(device, stream, device.modules.function(kernel), shape, parameters);
  device.marks.note(stream.id, static_cast<Queued>(kernel.number()));
}

void Runtime::launch_kernel(const Stream& stream, const void* image, const char* kernel,
                            const LaunchShape& shape, std::span<const std::byte> parameters) {
  Parts& device = parts(stream);
  const auto [function, taken] = device.modules.function(image, kernel);
  LS_CHECK(taken == parameters.size(), DeviceError,
           "[{}] expected {} bytes for the kernel's one parameter, got {}. Does its struct differ "
           "between the module and the host's code?",
           kernel, taken, parameters.size());
  launch_kernel(device, stream, function, shape, parameters.data());
  device.marks.note(stream.id, kImageKernel);
}

void Runtime::launch_kernel(Parts& device, const Stream& stream, CUfunction kernel,
                            const LaunchShape& shape, const void* parameters) {
  const CUstream queue = device.streams.get(stream.id);
  const ContextGuard guard(device.context);
  const Driver& driver = device.context.driver();
  if (shape.shared_bytes > kSharedBytesAtOnce) {
    LS_CUDA(driver, cuFuncSetAttribute, kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            static_cast<int>(shape.shared_bytes));
  }
  void* arguments[] = {const_cast<void*>(parameters)};
  LS_CUDA(driver, cuLaunchKernel, kernel, shape.blocks[0], shape.blocks[1], shape.blocks[2],
          shape.threads, shape.threads_y, shape.threads_z, shape.shared_bytes, queue, arguments,
          nullptr);
}

void Runtime::unload(std::span<const void* const> images) noexcept {
  if (phase_.load(std::memory_order_acquire) == 0) return;  // nothing was ever loaded
  Loaded* const found = loaded();
  if (found == nullptr) return;
  for (const auto& parts : found->parts) {
    try {
      for (const void* const image : images) parts->modules.unload(image);
    } catch (const std::exception&) {
      // Without the device there are no modules to unload.
    }
  }
}

bool Runtime::is_capturing(Parts& device, CUstream queue) {
  if (device.captures.load(std::memory_order_relaxed) == 0) [[likely]]
    return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  LS_CUDA(device.context.driver(), cuStreamIsCapturing, queue, &status);
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void Runtime::begin_capture(const Stream& stream) {
  Parts& device = parts(stream);
  const CUstream queue = device.streams.get(stream.id);
  const ContextGuard guard(device.context);
  // Relaxed mode, because the allocator takes memory and modules are loaded during a capture.
  // Unsafe calls are rejected here instead (require_no_capture), with the operator's name.
  const MutexLock lock(device.capturing);
  LS_CUDA(device.context.driver(), cuStreamBeginCapture, queue, CU_STREAM_CAPTURE_MODE_RELAXED);
  ++device.captures;
}

CUgraphExec Runtime::end_capture(const Stream& stream) {
  Parts& device = parts(stream);
  const CUstream queue = device.streams.get(stream.id);
  const ContextGuard guard(device.context);
  const Driver& driver = device.context.driver();
  CUgraph graph = nullptr;
  {
    const MutexLock lock(device.capturing);
    --device.captures;
    LS_CUDA(driver, cuStreamEndCapture, queue, &graph);
  }
  CUgraphExec executable = nullptr;
  const CUresult result = driver.cuGraphInstantiate(&executable, graph, 0);
  (void)driver.cuGraphDestroy(graph);
  check(driver, result, "cuGraphInstantiate");
  return executable;
}

void Runtime::drop_capture(const Stream& stream) noexcept {
  try {
    Parts& device = parts(stream);
    const CUstream queue = device.streams.get(stream.id);
    const ContextGuard guard(device.context);
    CUgraph graph = nullptr;
    const MutexLock lock(device.capturing);
    --device.captures;
    // `graph` stays null if something could not be recorded.
    (void)device.context.driver().cuStreamEndCapture(queue, &graph);
    if (graph != nullptr) (void)device.context.driver().cuGraphDestroy(graph);
  } catch (const std::exception&) {
    // Without a context there is no capture to end.
  }
}

void Runtime::launch_graph(const Stream& stream, CUgraphExec graph) {
  Parts& device = parts(stream);
  const CUstream queue = device.streams.get(stream.id);
  const ContextGuard guard(device.context);
  LS_CUDA(device.context.driver(), cuGraphLaunch, graph, queue);
  device.marks.note(stream.id, kReplay);
}

void Runtime::destroy_graph(int device, CUgraphExec graph) noexcept {
  try {
    Context& context = parts(device).context;
    const ContextGuard guard(context);
    (void)context.driver().cuGraphExecDestroy(graph);
  } catch (const std::exception&) {
    // The graph was destroyed with the device.
  }
}

StreamMarks::Look Runtime::look_at_marks(int device) {
  Parts& on = parts(device);
  try {
    const StreamMarks::Look look = on.marks.look();
    const MutexLock lock(on.capturing);
    if (on.captures.load() == 0) on.marks.mark();
    return look;
  } catch (const DeviceError&) {
    on.marks.clear();
    throw;
  }
}

Faults& Runtime::faults(int device) { return parts(device).faults; }

int Runtime::device_count() {
  const Loaded* const found = loaded();
  return found == nullptr ? 0 : static_cast<int>(found->parts.size());
}

DeviceMemory& Runtime::memory(int device) { return parts(device).memory; }

Stream Runtime::create_stream(int device, int priority) {
  return {{DeviceType::kCUDA, static_cast<int8_t>(device)}, parts(device).streams.create(priority)};
}

Stream Runtime::adopt_stream(int device, void* native) {
  return {{DeviceType::kCUDA, static_cast<int8_t>(device)},
          parts(device).streams.adopt(static_cast<CUstream>(native))};
}

void Runtime::destroy_stream(const Stream& stream) noexcept {
  try {
    parts(stream).streams.destroy(stream.id);
  } catch (const std::exception&) {
    // The stream was destroyed with the device.
  }
}

int Runtime::priority(const Stream& stream) { return parts(stream).streams.priority(stream.id); }

void* Runtime::native(const Stream& stream) {
  Parts& device = parts(stream);
  device.marks.note(stream.id, kLibrary);
  return device.streams.get(stream.id);
}

bool Runtime::query(const Stream& stream) {
  Parts& device = parts(stream);
  if (!device.streams.exists(stream.id)) return true;
  const CUstream queue = device.streams.get(stream.id);
  const ContextGuard guard(device.context);
  if (is_capturing(device, queue)) return true;  // captured work does not run
  const Driver& driver = device.context.driver();
  return is_done(driver, driver.cuStreamQuery(queue), "cuStreamQuery");
}

void Runtime::synchronize(const Stream& stream) {
  require_no_capture_here("synchronize", kWaits);
  Parts& device = parts(stream);
  if (!device.streams.exists(stream.id)) return;
  const CUstream queue = device.streams.get(stream.id);
  const ContextGuard guard(device.context);
  LS_CUDA(device.context.driver(), cuStreamSynchronize, queue);
  device.faults.check();
}

void Runtime::synchronize(int device) {
  require_no_capture_here("synchronize", kWaits);
  Context& context = parts(device).context;
  LS_CHECK(parts(device).captures.load() == 0, DeviceError,
           "[synchronize] cannot wait for all of cuda:{} while a thread captures a graph on it. "
           "Wait for a stream.",
           device);
  const ContextGuard guard(context);
  check(context.driver(), context.driver().cuCtxSynchronize(), "cuCtxSynchronize");
  parts(device).faults.check();
}

void* Runtime::create_event(int device, bool timing) {
  return parts(device).events.acquire(timing);
}

void Runtime::destroy_event(void* event) noexcept {
  try {
    parts(handle(event).device).events.release(&handle(event));
  } catch (const std::exception&) {
    delete &handle(event);  // from before a fork: the driver is unusable
  }
}

void Runtime::record(void* event, const Stream& stream) {
  LS_CHECK(handle(event).device == stream.device.index, DeviceError,
           "[record] an event of cuda:{} cannot mark {}: expected a stream of its device.",
           handle(event).device, to_string(stream));
  Parts& device = parts(stream);
  const CUstream queue = device.streams.get(stream.id);
  const ContextGuard guard(device.context);
  LS_CUDA(device.context.driver(), cuEventRecord, handle(event).native, queue);
  device.marks.note(stream.id);
  handle(event).recorded = true;
  handle(event).captured = is_capturing(device, queue);
}

void Runtime::wait(const Stream& stream, void* event) {
  Parts& device = parts(stream);
  const CUstream queue = device.streams.get(stream.id);
  if (!handle(event).recorded) return;
  // A mark inside a finished graph stands for no queued work.
  if (handle(event).captured && device.captures.load() == 0) return;
  const ContextGuard guard(device.context);
  LS_CUDA(device.context.driver(), cuStreamWaitEvent, queue, handle(event).native,
          CU_EVENT_WAIT_DEFAULT);
  device.marks.note(stream.id);
}

bool Runtime::query(void* event) {
  Context& context = parts(handle(event).device).context;
  if (!handle(event).recorded || handle(event).captured) return true;
  const ContextGuard guard(context);
  const Driver& driver = context.driver();
  return is_done(driver, driver.cuEventQuery(handle(event).native), "cuEventQuery");
}

void Runtime::synchronize(void* event) {
  require_no_capture_here("synchronize", kWaits);
  Context& context = parts(handle(event).device).context;
  if (!handle(event).recorded || handle(event).captured) return;
  const ContextGuard guard(context);
  LS_CUDA(context.driver(), cuEventSynchronize, handle(event).native);
  parts(handle(event).device).faults.check();
}

double Runtime::elapsed_ms(void* start, void* end) {
  const EventHandle& from = handle(start);
  const EventHandle& to = handle(end);
  LS_CHECK(from.timing && to.timing && from.recorded && to.recorded, DeviceError,
           "[elapsed_ms] expected two events with timing, recorded.");
  LS_CHECK(from.device == to.device, DeviceError,
           "[elapsed_ms] the events are of different devices: cuda:{} and cuda:{}.", from.device,
           to.device);
  Context& context = parts(from.device).context;
  const ContextGuard guard(context);
  float milliseconds = 0;
  const CUresult result =
      context.driver().cuEventElapsedTime(&milliseconds, from.native, to.native);
  LS_CHECK(result != CUDA_ERROR_NOT_READY, DeviceError,
           "[elapsed_ms] an event has not been reached. Call synchronize() of the later one "
           "first.");
  check(context.driver(), result, "cuEventElapsedTime");
  return static_cast<double>(milliseconds);
}

void Runtime::copy(const Stream& stream, void* to, const void* from, size_t bytes,
                   Transfer direction) {
  if (direction != Transfer::kWithin) {
    require_no_capture_here("copy", "a replay would find other things in the cpu's memory");
  }
  Parts& device = parts(stream);
  const CUstream queue = device.streams.get(stream.id);
  if (bytes == 0) return;
  const ContextGuard guard(device.context);
  // Unified addressing: the driver finds the direction from the addresses.
  LS_CUDA(device.context.driver(), cuMemcpyAsync, reinterpret_cast<CUdeviceptr>(to),
          reinterpret_cast<CUdeviceptr>(from), bytes, queue);
  device.marks.note(stream.id, kCopy);
}

bool Runtime::reaches_peer(int device, int peer) {
  const Context& own = parts(device).context;
  int can = 0;
  LS_CUDA(own.driver(), cuDeviceCanAccessPeer, &can, own.device(), parts(peer).context.device());
  return can != 0;
}

void Runtime::open_peer(int device, int peer) {
  Context& own = parts(device).context;
  Parts& other = parts(peer);
  {
    // Opens what cuMemAlloc gave, and no mapped memory.
    const ContextGuard guard(own);
    const CUresult result = own.driver().cuCtxEnablePeerAccess(other.context.get(), 0);
    if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
      check(own.driver(), result, "cuCtxEnablePeerAccess");
    }
  }
  other.memory.open_to(own.device());
}

void Runtime::open_each_other(int device, int peer) {
  Loaded& all = *loaded();
  const MutexLock lock(all.peers_mutex);
  if (!all.peers.emplace(std::minmax(device, peer)).second) return;
  for (const auto& [from, to] : {std::pair(device, peer), std::pair(peer, device)}) {
    try {
      if (reaches_peer(from, to)) open_peer(from, to);
    } catch (const DeviceError&) {
      // Copies are then slower. An error that ends the device is found by the copy itself.
    }
  }
}

void Runtime::copy_between(const Stream& stream, void* to, Device to_device, const void* from,
                           Device from_device, size_t bytes) {
  Parts& device = parts(stream);
  Context& target = parts(to_device.index).context;
  Context& source = parts(from_device.index).context;
  const CUstream queue = device.streams.get(stream.id);
  if (bytes == 0) return;
  open_each_other(to_device.index, from_device.index);
  const ContextGuard guard(device.context);
  // The documentation of cuMemcpyPeerAsync promises a copy from memory of one context to memory of
  // another, which need not reach each other, and makes no exception of memory from cuMemMap: it
  // must be accessible to the device of the context that is given with it, as all of ours is.
  // cuMemcpyAsync has one context only and refuses mapped memory that its device may not access.
  LS_CUDA(device.context.driver(), cuMemcpyPeerAsync, reinterpret_cast<CUdeviceptr>(to),
          target.get(), reinterpret_cast<CUdeviceptr>(from), source.get(), bytes, queue);
  device.marks.note(stream.id, kCopy);
}

void Runtime::add_callback(const Stream& stream, std::function<void()> callback) {
  require_no_capture_here("add_callback", "it is called once");
  Parts& device = parts(stream);
  const CUstream queue = device.streams.get(stream.id);
  const ContextGuard guard(device.context);
  auto owned = std::make_unique<std::function<void()>>(std::move(callback));
  LS_CUDA(device.context.driver(), cuLaunchHostFunc, queue, &run_callback, owned.get());
  (void)owned.release();  // run_callback owns it now
  device.marks.note(stream.id);
}

Runtime& runtime() {
  // Never destroyed: tensors of static storage duration may be freed during static destruction.
  static auto* const instance = new Runtime([] { return load_driver(); });
  return *instance;
}

void set_driver_loader(Runtime::Loader load) { runtime().set_loader(std::move(load)); }

Runtime& runtime_of(Device device) {
  auto* const found = dynamic_cast<Runtime*>(&require_runtime(device));
  LS_CHECK(found != nullptr, DeviceError, "[cuda] expected a cuda device, got {}.",
           to_string(device));
  return *found;
}

Availability availability() { return runtime().availability(); }

namespace {
[[maybe_unused]] const bool kRegistered =
    set_device_runtime(DeviceType::kCUDA, &runtime()) == nullptr;
[[maybe_unused]] const bool kGpuTold = register_arithmetic_fact(
    DeviceType::kCUDA, "GPU", [](int device) { return name_of(runtime().context(device)); });
}  // namespace

}  // namespace lockstep::cuda
