#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/device.h"
#include "core/tensor/stream.h"

namespace lockstep {

class Allocator;

/// A block of memory obtained from an allocator. Plain data: the holder returns it with `free`.
struct Block {
  void* data = nullptr;
  size_t bytes = 0;        ///< usable size, at least the requested size
  void* cookie = nullptr;  ///< private to the allocator
  Allocator* owner = nullptr;
};

/// Counters since the process started; the peak since `reset_peak`.
struct MemoryStats {
  int64_t allocated = 0;       ///< bytes in live blocks
  int64_t peak_allocated = 0;  ///< highest `allocated`
  int64_t reserved = 0;        ///< bytes obtained from the system
  int64_t allocations = 0;     ///< calls of `allocate` with bytes > 0
  int64_t system_calls = 0;    ///< number of requests to the system or the driver
};

/// Direction of a copy: between a device and the cpu, or within the device.
enum class Transfer : uint8_t { kToCpu, kFromCpu, kWithin };

/// Allocates device memory. Implementations are thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;

  /// Returns at least `bytes` bytes, aligned to 512, for use on `stream`. Zero bytes give a null
  /// block. Throws OutOfMemoryError; the allocator stays usable.
  virtual Block allocate(size_t bytes, const Stream& stream) = 0;
  /// Frees a block; it may be reused at once by the stream that it was allocated for.
  virtual void free(const Block& block) noexcept = 0;
  /// Marks the block as used by `stream`, too: it is not reused before the work that is queued on
  /// `stream` when the block is freed has finished.
  virtual void record_stream(const Block& block, const Stream& stream) = 0;
  /// Marks the block as used by `stream` up to now: it is not reused before the work that is queued
  /// there at this call has finished. The default calls `record_stream`.
  virtual void record_use(const Block& block, const Stream& stream) {
    record_stream(block, stream);
  }
  /// Called when a stream has been destroyed and its work has finished. Blocks allocated for it
  /// stay valid.
  virtual void stream_destroyed(const Stream& /*stream*/) noexcept {}
  /// Copies bytes between ranges that do not overlap, after the work queued on the memory; the copy
  /// is complete on return. The default suits memory that the cpu can address.
  virtual void copy(void* to, const void* from, size_t bytes, Transfer direction);

  virtual MemoryStats stats() const = 0;
  virtual void reset_peak() = 0;
};

/// The allocator of a device: the one set for its type, or else one over its runtime's memory
/// (core/device/device_runtime.h), created on first use. Throws DeviceError if there is neither.
Allocator& allocator(Device device);
/// Tells the allocator of the stream's device, if it exists already, that the stream was destroyed.
void notify_stream_destroyed(const Stream& stream) noexcept;
/// Makes `allocator` serve every device of `type`; it must live as long as the process. Returns the
/// previous one, or null. Call before any tensor of that type exists.
Allocator* set_allocator(DeviceType type, Allocator* allocator);

}  // namespace lockstep
