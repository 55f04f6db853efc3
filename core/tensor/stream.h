#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/scoped_value.h"
#include "core/tensor/device.h"

namespace lockstep {

class Event;

/// A queue of work on a device. Work on one stream runs in order, work on two streams in any order
/// unless an Event orders it. A value: copies refer to the same queue. `cpu` and `meta` have only
/// stream 0, on which every call finishes before it returns.
///
/// Stream 0 is the device's default stream, an ordinary queue: it does not synchronize with other
/// streams, unlike CUDA's legacy default stream. Thread-safe.
struct Stream {
  Device device;
  int32_t id = 0;

  /// Blocks until the work queued so far is done. Throws the first error of a kernel on the stream
  /// that has not been reported yet, with operator and call site; later work still runs.
  void synchronize() const;
  /// Whether the work queued so far is done. Never blocks.
  bool query() const;
  /// Makes later work on this stream wait for the work marked by `event`. Does not block the
  /// caller.
  void wait_event(const Event& event) const;
  /// Makes later work on this stream wait for all work queued on `other` now.
  void wait_stream(const Stream& other) const;
  /// Calls `callback` on a thread of the runtime once the work queued so far is done; later work
  /// waits until it returns. It must not throw, wait for the device or queue work.
  void add_callback(std::function<void()> callback) const;
  /// 0, or negative for a high-priority stream.
  int priority() const;

  friend bool operator==(const Stream&, const Stream&) = default;
};

/// "host:0 stream 3".
std::string to_string(const Stream& stream);

/// Number of pooled streams of each priority on each device, as in PyTorch.
inline constexpr int kPoolStreams = 32;

namespace detail {
inline thread_local constinit std::array<int32_t, kDeviceTypes * kMaxDevices> thread_streams{};

inline int32_t& thread_stream(Device device) noexcept {
  return thread_streams[static_cast<size_t>(device.type) * kMaxDevices +
                        static_cast<size_t>(device.index)];
}
}  // namespace detail

/// The stream that this thread's next operator on `device` will use.
inline Stream current_stream(Device device) noexcept {
  return {device, detail::thread_stream(device)};
}
inline Stream default_stream(Device device) noexcept { return {device, 0}; }
/// Returns the pool's streams in turn, so two callers may share one after `kPoolStreams` calls. A
/// negative priority gives a high-priority stream. Returns the default stream on devices that have
/// only one. Throws DeviceError if there is no such device.
Stream get_stream_from_pool(Device device, int priority = 0);
/// Wraps a queue that another library made (on cuda, a CUstream), which must outlive its use here.
/// Throws DeviceError if the device has no such queues.
Stream external_stream(Device device, void* native);
/// Waits for all work of the device; throws the errors that Stream::synchronize throws.
void synchronize(Device device);

/// A stream outside the pool, owned by this object. Not copyable.
class OwnedStream {
 public:
  /// Throws DeviceError if there is no such device or it cannot make another stream.
  explicit OwnedStream(Device device, int priority = 0);
  /// Waits for the work queued on it. Using a copy of the Stream afterwards throws DeviceError.
  ~OwnedStream();
  OwnedStream(OwnedStream&& other) noexcept;
  OwnedStream& operator=(OwnedStream&& other) noexcept;

  const Stream& get() const noexcept { return stream_; }

 private:
  Stream stream_;  // id < 0: moved from
};

/// While alive, `stream` is this thread's current stream of its device.
class StreamGuard {
 public:
  [[nodiscard]] explicit StreamGuard(const Stream& stream) noexcept
      : stream_(detail::thread_stream(stream.device), stream.id) {}

 private:
  ScopedValue<int32_t> stream_;
};

}  // namespace lockstep
