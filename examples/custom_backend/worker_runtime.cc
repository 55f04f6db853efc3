#include "worker_runtime.h"

#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace worker {

using namespace lockstep;

namespace {

constexpr size_t kBudget = size_t{1} << 30;
constexpr size_t kAlignment = 512;  // what DeviceMemory promises

std::atomic<bool> g_is_forked{false};

void* aligned(size_t bytes) {
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// Target of an event handle: the first `number` tasks of a stream.
struct WorkerEvent {
  bool timing;
  std::shared_ptr<WorkerStream> stream;  ///< null before the first record
  uint64_t number = 0;
  std::shared_ptr<std::atomic<int64_t>> time;  ///< nanoseconds; null without timing
};
WorkerEvent& event_of(void* event) { return *static_cast<WorkerEvent*>(event); }

}  // namespace

// --- memory ----------------------------------------------------------------------------------

void* WorkerMemory::allocate(size_t bytes) noexcept {
  size_t used = used_;
  do {
    if (bytes > budget_ - used) return nullptr;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  void* const address = aligned(bytes);
  if (address == nullptr) used_ -= bytes;
  return address;
}

void WorkerMemory::release(void* address, size_t bytes) noexcept {
  std::free(address);
  used_ -= bytes;
}

void* WorkerMemory::allocate_pinned(size_t bytes) noexcept { return aligned(bytes); }
void WorkerMemory::release_pinned(void* address, size_t) noexcept { std::free(address); }

// --- streams ---------------------------------------------------------------------------------

WorkerRuntime::WorkerRuntime(DeviceType type) : type_(type), memory_(kBudget) {
  pthread_atfork(nullptr, nullptr, [] { g_is_forked = true; });
}

int WorkerRuntime::device_count() { return g_is_forked ? 0 : 1; }
std::string WorkerRuntime::why_unavailable() {
  return g_is_forked ? "this process was forked, and its parent has the worker threads" : "";
}

std::shared_ptr<WorkerStream> WorkerRuntime::find(const Stream& stream) {
  const MutexLock lock(mutex_);
  const auto found = streams_.find(stream.id);
  if (found != streams_.end()) return found->second;
  if (stream.id < 0 || stream.id >= kFixed) {
    throw DeviceError("[stream] " + to_string(stream) +
                      " was destroyed or never made: expected a stream that exists.");
  }
  const int priority = stream.id > kPoolStreams ? -1 : 0;
  return streams_[stream.id] = std::make_shared<WorkerStream>(priority);
}

std::vector<std::shared_ptr<WorkerStream>> WorkerRuntime::streams() {
  std::vector<std::shared_ptr<WorkerStream>> all;
  const MutexLock lock(mutex_);
  for (const auto& [id, stream] : streams_) all.push_back(stream);
  return all;
}

Stream WorkerRuntime::create_stream(int device, int priority) {
  const MutexLock lock(mutex_);
  streams_[next_id_] = std::make_shared<WorkerStream>(priority);
  return {{type_, static_cast<int8_t>(device)}, next_id_++};
}

Stream WorkerRuntime::adopt_stream(int, void*) {
  throw DeviceError(
      "[external_stream] a worker has no queues of other libraries: make an "
      "OwnedStream.");
}

void WorkerRuntime::destroy_stream(const Stream& stream) noexcept {
  std::shared_ptr<WorkerStream> destroyed;
  {
    const MutexLock lock(mutex_);
    const auto found = streams_.find(stream.id);
    if (found == streams_.end()) return;
    destroyed = std::move(found->second);
    streams_.erase(found);
  }
  const uint64_t last = destroyed->submitted();
  destroyed->wait(last);
  try {
    destroyed->throw_error(last);
  } catch (...) {
    const MutexLock lock(mutex_);
    if (lost_error_ == nullptr) lost_error_ = std::current_exception();
  }
}

int WorkerRuntime::priority(const Stream& stream) { return find(stream)->priority(); }
void* WorkerRuntime::native(const Stream& stream) { return find(stream).get(); }

bool WorkerRuntime::query(const Stream& stream) {
  const auto queue = find(stream);
  return queue->reached(queue->submitted());
}

void WorkerRuntime::synchronize(const Stream& stream) {
  const auto queue = find(stream);
  const uint64_t last = queue->submitted();
  queue->wait(last);
  queue->throw_error(last);
}

void WorkerRuntime::synchronize(int) {
  const auto all = streams();
  for (const auto& stream : all) stream->wait(stream->submitted());
  for (const auto& stream : all) stream->throw_error(stream->submitted());
  std::exception_ptr lost;
  {
    const MutexLock lock(mutex_);
    lost = std::exchange(lost_error_, nullptr);
  }
  if (lost != nullptr) std::rethrow_exception(lost);
}

void WorkerRuntime::finish() {
  for (const auto& stream : streams()) stream->wait(stream->submitted());
}

// --- events ----------------------------------------------------------------------------------

void* WorkerRuntime::create_event(int, bool timing) {
  return new WorkerEvent{timing, nullptr, 0, nullptr};
}
void WorkerRuntime::destroy_event(void* event) noexcept { delete &event_of(event); }

void WorkerRuntime::record(void* event, const Stream& stream) {
  WorkerEvent& mark = event_of(event);
  mark.stream = find(stream);
  if (mark.timing) {
    mark.time = std::make_shared<std::atomic<int64_t>>(0);
    mark.number = mark.stream->push([time = mark.time] { *time = now_ns(); });
  } else {
    mark.number = mark.stream->submitted();
  }
}

void WorkerRuntime::wait(const Stream& stream, void* event) {
  const WorkerEvent& mark = event_of(event);
  const auto queue = find(stream);
  if (mark.stream == nullptr || mark.stream == queue) return;
  // The task has its own copy of the mark: the event may be recorded again or destroyed.
  queue->push([earlier = mark.stream, number = mark.number] { earlier->wait(number); });
}

bool WorkerRuntime::query(void* event) {
  const WorkerEvent& mark = event_of(event);
  return mark.stream == nullptr || mark.stream->reached(mark.number);
}

void WorkerRuntime::synchronize(void* event) {
  const WorkerEvent& mark = event_of(event);
  if (mark.stream == nullptr) return;
  mark.stream->wait(mark.number);
  mark.stream->throw_error(mark.number);
}

double WorkerRuntime::elapsed_ms(void* start, void* end) {
  const WorkerEvent& first = event_of(start);
  const WorkerEvent& last = event_of(end);
  if (first.time == nullptr || last.time == nullptr || !query(start) || !query(end)) {
    throw DeviceError("[elapsed_ms] expected two events with timing that have been reached.");
  }
  return static_cast<double>(*last.time - *first.time) / 1e6;
}

// --- work ------------------------------------------------------------------------------------

void WorkerRuntime::copy(const Stream& stream, void* to, const void* from, size_t bytes, Transfer) {
  find(stream)->push([=] { std::memcpy(to, from, bytes); });
}

void WorkerRuntime::add_callback(const Stream& stream, std::function<void()> callback) {
  find(stream)->push(std::move(callback));
}

void WorkerRuntime::launch(const Stream& stream, std::unique_ptr<QueuedKernel> kernel) {
  find(stream)->push([this, kernel = std::shared_ptr<QueuedKernel>(std::move(kernel))] {
    const LibraryOnOneThread one_thread;
    set_num_threads(kernel_threads_);
    // The numbers are those that the thread that queued the kernel would draw.
    if (kernel->random()) default_generator().set_state(*kernel->random());
    ++kernels_;
    kernel->run();
  });
}

}  // namespace worker
