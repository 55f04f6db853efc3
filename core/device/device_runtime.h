#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/device/device_memory.h"
#include "core/device/queued_kernel.h"
#include "core/tensor/allocator.h"
#include "core/tensor/stream.h"

namespace lockstep {

/// Runs the streams of one device type: the host device's worker threads, or a GPU's driver.
/// Programs use Stream and Event, which call it; a new backend implements it.
///
/// Streams 0 (default), 1 to kPoolStreams (priority 0) and the next kPoolStreams (high priority)
/// always exist and are created on first use. Functions throw DeviceError for a device that does
/// not exist and for a stream that was destroyed. Thread-safe.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  virtual int device_count() = 0;
  /// The reason why no device can be used, without a full stop; "" if one can.
  virtual std::string why_unavailable() { return ""; }
  virtual DeviceMemory& memory(int device) = 0;

  // Streams; see core/tensor/stream.h.
  virtual Stream create_stream(int device, int priority) = 0;
  virtual Stream adopt_stream(int device, void* native) = 0;
  /// Waits for the work on the stream and destroys it. No effect if it is destroyed already.
  virtual void destroy_stream(const Stream& stream) noexcept = 0;
  virtual int priority(const Stream& stream) = 0;
  /// The stream's native handle, for the device's own libraries.
  virtual void* native(const Stream& stream) = 0;
  virtual bool query(const Stream& stream) = 0;
  /// Throws the error of a kernel that ran since the last call; each error is thrown once.
  virtual void synchronize(const Stream& stream) = 0;
  virtual void synchronize(int device) = 0;

  // Events; see core/tensor/event.h. A handle is made for one device and may be recorded many
  // times.
  virtual void* create_event(int device, bool timing) = 0;
  /// May be called at any time; waits on the event that were queued before still work.
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record(void* event, const Stream& stream) = 0;
  virtual void wait(const Stream& stream, void* event) = 0;
  virtual bool query(void* event) = 0;
  virtual void synchronize(void* event) = 0;
  virtual double elapsed_ms(void* start, void* end) = 0;

  // Work.
  /// Queues a copy of bytes that do not overlap. Memory of the cpu must be pinned, or stay
  /// unchanged until the copy is done.
  virtual void copy(const Stream& stream, void* to, const void* from, size_t bytes,
                    Transfer direction) = 0;
  /// Queues a copy between memory of two of its devices, on a stream of either. Unless a runtime
  /// must treat it differently, it is a copy within one device.
  virtual void copy_between(const Stream& stream, void* to, Device to_device, const void* from,
                            Device from_device, size_t bytes);
  /// Whether copies that do not block need cpu memory that this device's driver pinned. If so, the
  /// pinned allocator takes its memory from here (DeviceMemory::allocate_pinned).
  virtual bool needs_pinned_memory() const { return false; }
  virtual void add_callback(const Stream& stream, std::function<void()> callback) = 0;
  /// Whether the device runs the cpu's kernels, queued by `launch`.
  virtual bool runs_cpu_kernels() const { return false; }
  virtual void launch(const Stream& stream, std::unique_ptr<QueuedKernel> kernel);
  /// Sets the number of threads that each of those kernels may use from now on; initially 1.
  virtual void set_kernel_threads(int) {}
};

/// The runtime of a device type; null for `cpu` and `meta`, and if no backend registered one.
DeviceRuntime* device_runtime(DeviceType type) noexcept;
/// Like device_runtime, but throws DeviceError, listing the usable devices, if there is no runtime
/// or it has no device of this index.
DeviceRuntime& require_runtime(Device device);
/// Like require_runtime, but returns null for devices on which every call finishes before it
/// returns: `cpu`, `meta` and slots without a runtime.
DeviceRuntime* find_runtime(Device device);
/// Makes `runtime` serve every device of `type`, with a CachingAllocator over each device's memory.
/// It must live as long as the process. Returns the previous one, or null. Call before the first
/// use.
DeviceRuntime* set_device_runtime(DeviceType type, DeviceRuntime* runtime);

/// Number of usable devices of this type: 1 for `cpu` and `meta`, 0 without a runtime.
int device_count(DeviceType type);

/// Queues a copy of `bytes` bytes on `stream`, which belongs to the device that is not the cpu.
/// `transfer_bytes` and non_blocking copies use it.
void copy_async(const Stream& stream, void* to, const void* from, size_t bytes, Transfer direction);
/// Queues a copy of `bytes` bytes between two devices of one type, on `stream`, which belongs to
/// one of them. Its owner orders it with the other device's work. `transfer_bytes` uses it.
void copy_between_async(const Stream& stream, void* to, Device to_device, const void* from,
                        Device from_device, size_t bytes);

}  // namespace lockstep
