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

/// What runs the streams of one device type: the host device's worker threads, or a GPU's driver.
/// Programs use Stream and Event; this is what those stand on, and what a new backend implements.
///
/// Streams 0 (default), 1 to kPoolStreams (priority 0) and the next kPoolStreams (high priority)
/// exist from the start, made when first used. Functions throw DeviceError for a device that does
/// not exist and for a stream that was destroyed. Thread-safe.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  virtual int device_count() = 0;
  /// Why no device can be used, without a full stop; "" where one can.
  virtual std::string why_unavailable() { return ""; }
  virtual DeviceMemory& memory(int device) = 0;

  // Streams; see core/tensor/stream.h.
  virtual Stream create_stream(int device, int priority) = 0;
  virtual Stream adopt_stream(int device, void* native) = 0;
  /// Waits for the work on it. Does nothing to one that is gone already.
  virtual void destroy_stream(const Stream& stream) noexcept = 0;
  virtual int priority(const Stream& stream) = 0;
  /// What the device's own libraries call the stream.
  virtual void* native(const Stream& stream) = 0;
  virtual bool query(const Stream& stream) = 0;
  /// Throws what a kernel threw since the last call, once.
  virtual void synchronize(const Stream& stream) = 0;
  virtual void synchronize(int device) = 0;

  // Events; see core/tensor/event.h. A handle is made for one device and may be recorded many
  // times.
  virtual void* create_event(int device, bool timing) = 0;
  /// At any time; marks that others wait for stay.
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record(void* event, const Stream& stream) = 0;
  virtual void wait(const Stream& stream, void* event) = 0;
  virtual bool query(void* event) = 0;
  virtual void synchronize(void* event) = 0;
  virtual double elapsed_ms(void* start, void* end) = 0;

  // Work.
  /// Queues a copy of bytes that do not overlap. Memory of the cpu must be pinned or stay as it is
  /// until the copy is done.
  virtual void copy(const Stream& stream, void* to, const void* from, size_t bytes,
                    Transfer direction) = 0;
  virtual void add_callback(const Stream& stream, std::function<void()> callback) = 0;
  /// Whether the device's kernels are the cpu's, queued by `launch`.
  virtual bool runs_cpu_kernels() const { return false; }
  virtual void launch(const Stream& stream, std::unique_ptr<QueuedKernel> kernel);
  /// Threads that each of those kernels may use from now on; 1 at first.
  virtual void set_kernel_threads(int) {}
};

/// The runtime of a device type; null for `cpu` and `meta`, and where no backend brought one.
DeviceRuntime* device_runtime(DeviceType type) noexcept;
/// The same, but throws DeviceError, saying which devices there are, when there is none or it has
/// no device of this index.
DeviceRuntime& require_runtime(Device device);
/// The same, but null for devices on which every call finishes before it returns: `cpu`, `meta` and
/// slots without a runtime.
DeviceRuntime* find_runtime(Device device);
/// Makes `runtime` serve every device of `type`, with a CachingAllocator over each one's memory; it
/// must live as long as the process. Returns the one before, or null. Call before the first use.
DeviceRuntime* set_device_runtime(DeviceType type, DeviceRuntime* runtime);

/// Devices of this type that can be used: 1 for `cpu` and `meta`, 0 without a runtime.
int device_count(DeviceType type);

/// Queues a copy of `bytes` bytes on `stream`, a stream of the device that is not the cpu; through
/// it `transfer_bytes` and non_blocking copies go.
void copy_async(const Stream& stream, void* to, const void* from, size_t bytes, Transfer direction);

}  // namespace lockstep
