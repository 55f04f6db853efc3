#include "kernels/host/host_runtime.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/current_scope.h"
#include "core/base/spans/span.h"
#include "kernels/host/host_faults.h"
#include "kernels/host/host_options.h"

namespace lockstep::host {

namespace {

constinit std::atomic<HostRuntime*> g_runtime = nullptr;
constinit std::atomic<int> g_kernel_threads = 1;

HostRuntime& runtime() {
  // Never destroyed: worker threads may outlive every static object.
  static HostRuntime* const kInstance = [] {
    auto* const made = new HostRuntime();
    g_runtime = made;
    return made;
  }();
  return *kInstance;
}

// Runs before main(). Fork handlers of code that uses device memory are registered later, so their
// locks are taken first.
[[gnu::constructor(110)]] void prepare_for_fork() {
  (void)pthread_atfork(
      [] {
        if (HostRuntime* const host = g_runtime) host->lock();
      },
      [] {
        if (HostRuntime* const host = g_runtime) host->unlock();
      },
      [] {
        if (HostRuntime* const host = g_runtime) host->reset_after_fork();
      });
}

[[maybe_unused]] DeviceRuntime* const kRuntimeRegistered =
    set_device_runtime(DeviceType::kHost, &runtime());

/// Stops the workers when the thread that runs main() ends the process. Thread-local objects are
/// destroyed before static ones, which kernels may need until then.
struct StopAtExit {
  ~StopAtExit() {
    using namespace std::chrono_literals;
    HostStream::end_all();
    // Let running kernels finish, but do not let one that never ends keep the process alive.
    const auto patience = std::chrono::steady_clock::now() + 1s;
    while (runtime().is_running() && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(1ms);
    }
  }
};
bool stop_when_this_thread_ends() {
  thread_local const StopAtExit stop;
  return true;
}
[[maybe_unused]] const bool kStops = getpid() == gettid() && stop_when_this_thread_ends();

/// Target of an event handle.
struct HostEvent {
  int device;
  bool timing;
  Mark mark;
  Ref<MarkTime> time;
};
HostEvent& event_of(void* event) { return *static_cast<HostEvent*>(event); }

void throw_error_of(HostStream& stream, uint64_t sequence = ~uint64_t{0}) {
  if (const std::exception_ptr error = stream.take_error(sequence)) std::rethrow_exception(error);
}

}  // namespace

int kernel_threads() { return g_kernel_threads.load(std::memory_order_relaxed); }

// --- one device ------------------------------------------------------------------------------

HostMemory& HostDevice::memory(const HostOptions& options) {
  if (HostMemory* const made = memory()) return *made;
  const MutexLock lock(mutex_);
  if (memory() == nullptr) memory_ = new HostMemory(budget_of(options), options.granule);
  return *memory();
}

bool HostDevice::is_used() {
  const MutexLock lock(mutex_);
  bool used = memory() != nullptr || !owned_.empty();
  for (const auto& stream : fixed_) used |= stream.load() != nullptr;
  return used;
}

Ref<HostStream> HostDevice::make(int32_t id, int priority) {
  return make_ref<HostStream>(Stream{{DeviceType::kHost, index_}, id}, priority, gate_);
}

Ref<HostStream> HostDevice::find(int32_t id) {
  if (id < 0 || id >= kFixed) return find_owned(id);
  std::atomic<HostStream*>& place = fixed_[static_cast<size_t>(id)];
  HostStream* found = place.load(std::memory_order_acquire);
  if (found == nullptr) [[unlikely]] {
    const MutexLock lock(mutex_);
    found = place.load();
    if (found == nullptr) {
      found = make(id, id > kPoolStreams ? -1 : 0).detach();
      place.store(found, std::memory_order_release);
    }
  }
  return Ref<HostStream>::share(found);
}

Ref<HostStream> HostDevice::find_owned(int32_t id) {
  const MutexLock lock(mutex_);
  const auto found = owned_.find(id);
  LS_CHECK(found != owned_.end(), DeviceError,
           "[stream] {} was destroyed, or never made: expected a stream that exists.",
           to_string(Stream{{DeviceType::kHost, index_}, id}));
  Owned& owned = found->second;
  if (!owned.stream) owned.stream = make(id, owned.priority);
  return owned.stream;
}

Stream HostDevice::create(int priority) {
  const MutexLock lock(mutex_);
  const int32_t id = next_id_++;
  owned_[id] = {priority, {}};
  return {{DeviceType::kHost, index_}, id};
}

void HostDevice::destroy(int32_t id) {
  Ref<HostStream> stream;
  {
    const MutexLock lock(mutex_);
    const auto found = owned_.find(id);
    if (found == owned_.end()) return;
    stream = std::move(found->second.stream);
    owned_.erase(found);
  }
  if (!stream) return;
  stream->wait(stream->submitted());
  stream->stop();
  if (std::exception_ptr error = stream->take_error()) {
    const MutexLock lock(mutex_);
    if (lost_error_ == nullptr) lost_error_ = std::move(error);
  }
}

std::vector<Ref<HostStream>> HostDevice::streams() {
  std::vector<Ref<HostStream>> all;
  const MutexLock lock(mutex_);
  for (const auto& place : fixed_) {
    if (HostStream* const stream = place.load()) all.push_back(Ref<HostStream>::share(stream));
  }
  for (const auto& [id, owned] : owned_) {
    if (owned.stream) all.push_back(owned.stream);
  }
  return all;
}

void HostDevice::synchronize() {
  const std::vector<Ref<HostStream>> all = streams();
  for (const Ref<HostStream>& stream : all) stream->wait(stream->submitted());
  for (const Ref<HostStream>& stream : all) throw_error_of(*stream);
  std::exception_ptr lost;
  {
    const MutexLock lock(mutex_);
    lost = std::exchange(lost_error_, nullptr);
  }
  if (lost != nullptr) std::rethrow_exception(lost);
}

// Not analysed: the locks stay held when the function returns.
void HostDevice::lock() LS_NO_THREAD_SAFETY_ANALYSIS {
  mutex_.lock();
  gate_.lock();
  if (HostMemory* const made = memory()) made->lock();
}

// Not analysed: `lock` took the locks.
void HostDevice::unlock() LS_NO_THREAD_SAFETY_ANALYSIS {
  if (HostMemory* const made = memory()) made->unlock();
  gate_.unlock();
  mutex_.unlock();
}

// Not analysed: `lock` took the locks.
void HostDevice::reset_after_fork() LS_NO_THREAD_SAFETY_ANALYSIS {
  // Leaked, not destroyed: another thread may have been changing them at the fork.
  for (auto& place : fixed_) {
    if (HostStream* const stream = place.exchange(nullptr)) stream->reset_after_fork();
  }
  for (auto& [id, owned] : owned_) {
    if (HostStream* const stream = owned.stream.detach()) stream->reset_after_fork();
  }
  gate_.reset_after_fork();
  if (HostMemory* const made = memory()) made->leave_parent();
}

bool HostDevice::is_running() {
  for (const Ref<HostStream>& stream : streams()) {
    if (stream->is_running()) return true;
  }
  return false;
}

// --- all devices -----------------------------------------------------------------------------

HostRuntime::HostRuntime() {
  for (int i = 0; i < kMaxDevices; ++i) {
    devices_[static_cast<size_t>(i)] = std::make_unique<HostDevice>(i);
  }
}

void HostRuntime::ensure_options() {
  if (device_count_.load(std::memory_order_acquire) != 0) [[likely]] {
    return;
  }
  const MutexLock lock(mutex_);
  if (device_count_ == 0) adopt(options_from_environment());
}

void HostRuntime::adopt(const HostOptions& options) {
  options_ = options;
  g_kernel_threads = options.kernel_threads;
  copy_latency_s_ = options.copy_latency_us / 1e6;
  copy_s_per_byte_ = options.copy_bandwidth == 0 ? 0 : 1 / options.copy_bandwidth;
  call_stacks_ = options.call_stacks;
  for (const auto& device : devices_) {
    device->gate().set_limit(options.concurrent_kernels);
    if (HostMemory* const memory = device->memory()) memory->set_budget(budget_of(options));
  }
  device_count_.store(options.devices, std::memory_order_release);
}

void HostRuntime::set_kernel_threads(int threads) {
  HostOptions changed = options();
  changed.kernel_threads = threads;
  set_options(changed);
}

HostOptions HostRuntime::options() {
  ensure_options();
  const MutexLock lock(mutex_);
  return options_;
}

void HostRuntime::set_options(const HostOptions& options) {
  check(options);
  const MutexLock lock(mutex_);
  for (int i = 0; i < kMaxDevices; ++i) {
    HostDevice& device = *devices_[static_cast<size_t>(i)];
    LS_CHECK(i < options.devices || !device.is_used(), DeviceError,
             "[host] host:{} has been used: expected at least {} devices, got {}.", i, i + 1,
             options.devices);
    const HostMemory* const memory = device.memory();
    LS_CHECK(memory == nullptr || options.granule == options_.granule, DeviceError,
             "[host] memory of host:{} has been used: expected granules of {} bytes, got {}. Set "
             "them first.",
             i, options_.granule, options.granule);
  }
  adopt(options);
}

int HostRuntime::device_count() {
  ensure_options();
  return device_count_.load(std::memory_order_relaxed);
}

HostDevice& HostRuntime::device(int index) {
  LS_CHECK(index >= 0 && index < device_count(), DeviceError,
           "[host] there is no host:{}: expected host:0 to host:{}. LOCKSTEP_HOST=devices:N makes "
           "more.",
           index, device_count() - 1);
  return *devices_[static_cast<size_t>(index)];
}

DeviceMemory& HostRuntime::memory(int index) {
  HostDevice& owner = device(index);
  if (HostMemory* const made = owner.memory()) return *made;
  const HostOptions current = options();
  return owner.memory(current);
}

Stream HostRuntime::create_stream(int index, int priority) {
  return device(index).create(priority);
}

Stream HostRuntime::adopt_stream(int index, void*) {
  throw DeviceError(fmt::format(
      "[external_stream] host:{} has no queues of other libraries: make an OwnedStream.", index));
}

void HostRuntime::destroy_stream(const Stream& stream) noexcept {
  devices_[static_cast<size_t>(stream.device.index)]->destroy(stream.id);
}

int HostRuntime::priority(const Stream& stream) { return find(stream)->priority(); }
void* HostRuntime::native(const Stream& stream) { return find(stream).get(); }

bool HostRuntime::query(const Stream& stream) {
  const Ref<HostStream> queue = find(stream);
  return queue->reached(queue->submitted());
}

void HostRuntime::synchronize(const Stream& stream) {
  const Ref<HostStream> queue = find(stream);
  queue->wait(queue->submitted());
  throw_error_of(*queue);
}

void HostRuntime::synchronize(int index) { device(index).synchronize(); }

void* HostRuntime::create_event(int index, bool timing) {
  (void)device(index);
  return new HostEvent{index, timing, {}, {}};
}

void HostRuntime::destroy_event(void* event) noexcept { delete &event_of(event); }

void HostRuntime::record(void* event, const Stream& stream) {
  HostEvent& host_event = event_of(event);
  LS_CHECK(host_event.device == stream.device.index, DeviceError,
           "[record] an event of host:{} cannot be recorded on {}.", host_event.device,
           to_string(stream));
  Ref<HostStream> queue = find(stream);
  uint64_t sequence = 0;
  Ref<MarkTime> time;
  if (host_event.timing) {
    time = make_ref<MarkTime>();
    sequence = queue->push(TimeTask{time});
  } else {
    sequence = queue->submitted();
  }
  host_event.mark = {std::move(queue), sequence};
  host_event.time = std::move(time);
}

void HostRuntime::wait(const Stream& stream, void* event) {
  const Mark& mark = event_of(event).mark;
  const Ref<HostStream> queue = find(stream);
  // No task is needed if the mark was reached or is earlier in the same queue.
  if (!mark.stream || mark.stream == queue || mark.stream->reached(mark.sequence)) return;
  (void)queue->push(WaitTask{mark});
}

bool HostRuntime::query(void* event) {
  const Mark& mark = event_of(event).mark;
  return !mark.stream || mark.stream->reached(mark.sequence);
}

void HostRuntime::synchronize(void* event) {
  const Mark& mark = event_of(event).mark;
  if (!mark.stream) return;
  mark.stream->wait(mark.sequence);
  throw_error_of(*mark.stream, mark.sequence);
}

double HostRuntime::elapsed_ms(void* start, void* end) {
  const HostEvent& first = event_of(start);
  const HostEvent& second = event_of(end);
  LS_CHECK(first.time && second.time && query(start) && query(end), DeviceError,
           "[elapsed_ms] expected two events with timing that have been reached.");
  return static_cast<double>(second.time->nanoseconds - first.time->nanoseconds) / 1e6;
}

void HostRuntime::copy(const Stream& stream, void* to, const void* from, size_t bytes,
                       Transfer direction) {
  const bool through_bus = direction != Transfer::kWithin;
  const double seconds =
      through_bus ? copy_latency_s_ + static_cast<double>(bytes) * copy_s_per_byte_ : 0;
  (void)find(stream)->push(CopyTask{to, from, bytes, seconds, should_fail(HostFault::kCopy)});
}

void HostRuntime::add_callback(const Stream& stream, std::function<void()> callback) {
  (void)find(stream)->push(CallbackTask{std::move(callback)});
}

void HostRuntime::launch(const Stream& stream, std::unique_ptr<QueuedKernel> kernel) {
  KernelTask task{std::move(kernel), std::string(current_module()), nullptr,
                  should_fail(HostFault::kKernel)};
  if (call_stacks_.load(std::memory_order_relaxed)) {
    task.stack = std::make_unique<CallStack>(CallStack::capture());
  }
  if (is_recording_spans()) [[unlikely]] {
    task.launch = next_launch();
    record_moment(SpanKind::kLaunch, "launch", task.launch);
  }
  (void)find(stream)->push(std::move(task));
}

// Not analysed: the lock stays held when the function returns.
void HostRuntime::lock() LS_NO_THREAD_SAFETY_ANALYSIS {
  mutex_.lock();
  for (const auto& device : devices_) device->lock();
}

// Not analysed: `lock` took the lock.
void HostRuntime::unlock() LS_NO_THREAD_SAFETY_ANALYSIS {
  for (const auto& device : devices_) device->unlock();
  mutex_.unlock();
}

void HostRuntime::reset_after_fork() {
  for (const auto& device : devices_) device->reset_after_fork();
  unlock();
}

bool HostRuntime::is_running() {
  bool running = false;
  for (const auto& device : devices_) running |= device->is_running();
  return running;
}

}  // namespace lockstep::host

namespace lockstep {

HostOptions host_options() { return host::runtime().options(); }
void set_host_options(const HostOptions& options) { host::runtime().set_options(options); }

}  // namespace lockstep
