#include "core/tensor/stream.h"

#include <atomic>
#include <utility>

#include "core/base/check.h"
#include "core/base/spans/span.h"
#include "core/device/device_runtime.h"
#include "core/device/stream_sanitizer.h"
#include "core/tensor/allocator.h"
#include "core/tensor/event.h"

namespace lockstep {

namespace {

/// Number of streams of each device and priority that the pool has handed out.
constinit std::array<std::atomic<uint32_t>, 2 * kDeviceTypes * kMaxDevices> g_handed_out{};

/// The runtime of the stream's device; null if streams are synchronous.
DeviceRuntime* runtime_of(const Stream& stream) {
  DeviceRuntime* const runtime = find_runtime(stream.device);
  LS_CHECK(runtime != nullptr || stream.id == 0, DeviceError,
           "[stream] there is no {}: expected stream 0, the only one of this device.",
           to_string(stream));
  return runtime;
}

void check_priority(int priority) {
  LS_CHECK(priority <= 0, DeviceError,
           "[stream] a priority is 0, or negative for work that goes first, got {}.", priority);
}

/// Tells the stream sanitizer that the wait ended, even if it throws a kernel's error.
struct StreamDone {
  const Stream& stream;
  ~StreamDone() {
    if (stream_sanitizer::enabled()) stream_sanitizer::on_stream_done(stream);
  }
};
struct DeviceDone {
  Device device;
  ~DeviceDone() {
    if (stream_sanitizer::enabled()) stream_sanitizer::on_device_done(device);
  }
};

}  // namespace

void Stream::synchronize() const {
  if (DeviceRuntime* const runtime = runtime_of(*this)) {
    const StreamDone done{*this};
    const Span span(SpanKind::kWait, "wait for a stream");
    runtime->synchronize(*this);
  }
}

bool Stream::query() const {
  DeviceRuntime* const runtime = runtime_of(*this);
  if (runtime == nullptr) return true;
  const bool done = runtime->query(*this);
  if (done && stream_sanitizer::enabled()) stream_sanitizer::on_stream_done(*this);
  return done;
}

void Stream::wait_event(const Event& event) const {
  DeviceRuntime* const runtime = runtime_of(*this);
  if (event.native_ == nullptr || !event.recorded_) return;
  // Calls on a synchronous stream run on this thread, so the thread itself must wait.
  if (runtime == nullptr) return event.synchronize();
  LS_CHECK(event.stream_.device.type == device.type, DeviceError,
           "[wait_event] {} cannot wait for an event of {}: expected one of the same kind of "
           "device. Call synchronize() of the event.",
           to_string(*this), to_string(event.stream_.device));
  runtime->wait(*this, event.native_);
  if (stream_sanitizer::enabled()) stream_sanitizer::on_wait(*this, event.native_);
}

void Stream::wait_stream(const Stream& other) const {
  if (*this == other) return;
  Event event;
  event.record(other);
  wait_event(event);
}

void Stream::add_callback(std::function<void()> callback) const {
  LS_CHECK(callback != nullptr, DeviceError, "[add_callback] the callback of {} is empty.",
           to_string(*this));
  DeviceRuntime* const runtime = runtime_of(*this);
  if (runtime == nullptr) return callback();
  runtime->add_callback(*this, std::move(callback));
}

int Stream::priority() const {
  DeviceRuntime* const runtime = runtime_of(*this);
  return runtime == nullptr ? 0 : runtime->priority(*this);
}

std::string to_string(const Stream& stream) {
  return fmt::format("{} stream {}", to_string(stream.device), stream.id);
}

Stream get_stream_from_pool(Device device, int priority) {
  check_priority(priority);
  if (find_runtime(device) == nullptr) return default_stream(device);
  const bool high = priority < 0;
  const size_t slot =
      2 * (static_cast<size_t>(device.type) * kMaxDevices + static_cast<size_t>(device.index)) +
      (high ? 1 : 0);
  const uint32_t turn = g_handed_out[slot].fetch_add(1, std::memory_order_relaxed) % kPoolStreams;
  return {device, 1 + static_cast<int32_t>(turn) + (high ? kPoolStreams : 0)};
}

Stream external_stream(Device device, void* native) {
  return require_runtime(device).adopt_stream(device.index, native);
}

void synchronize(Device device) {
  if (DeviceRuntime* const runtime = find_runtime(device)) {
    const DeviceDone done{device};
    runtime->synchronize(device.index);
  }
}

OwnedStream::OwnedStream(Device device, int priority) {
  check_priority(priority);
  DeviceRuntime* const runtime = find_runtime(device);
  stream_ =
      runtime == nullptr ? default_stream(device) : runtime->create_stream(device.index, priority);
}

OwnedStream::~OwnedStream() {
  DeviceRuntime* const runtime = device_runtime(stream_.device.type);
  if (stream_.id < 0 || runtime == nullptr) return;
  const StreamDone done{stream_};
  runtime->destroy_stream(stream_);
  notify_stream_destroyed(stream_);
}

OwnedStream::OwnedStream(OwnedStream&& other) noexcept
    : stream_(std::exchange(other.stream_, {{}, -1})) {}

OwnedStream& OwnedStream::operator=(OwnedStream&& other) noexcept {
  const OwnedStream old(std::move(*this));
  stream_ = std::exchange(other.stream_, {{}, -1});
  return *this;
}

}  // namespace lockstep
