#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/device.h"
#include "core/tensor/stream.h"

namespace lockstep {

class Allocator;

/// Memory on loan from an allocator. Plain data: whoever holds it gives it back with `free`.
struct Block {
  void* data = nullptr;
  size_t bytes = 0;        ///< usable size, at least what was asked for
  void* cookie = nullptr;  ///< the allocator's own
  Allocator* owner = nullptr;
};

/// Counts in bytes since the process started, or since `reset_peak`.
struct MemoryStats {
  int64_t allocated = 0;       ///< in blocks on loan
  int64_t peak_allocated = 0;  ///< highest `allocated`
  int64_t reserved = 0;        ///< taken from the system
  int64_t allocations = 0;     ///< calls of `allocate` with bytes > 0
  int64_t system_calls = 0;    ///< requests made to the system or the driver
};

/// Where bytes go when they are copied: between a device and the cpu, or within the device.
enum class Transfer : uint8_t { kToCpu, kFromCpu, kWithin };

/// Hands out device memory. Implementations are thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;

  /// At least `bytes`, aligned to 512, for use on `stream`. Zero bytes give a null block.
  /// Throws OutOfMemoryError; the allocator stays usable.
  virtual Block allocate(size_t bytes, const Stream& stream) = 0;
  /// Takes a block back; it may be reused at once by its own stream.
  virtual void free(const Block& block) noexcept = 0;
  /// Says that `stream`, too, uses the block: it is not reused before the work queued there at
  /// `free`.
  virtual void record_stream(const Block& block, const Stream& stream) = 0;
  /// Says that `stream` used the block until now: it is not reused before the work queued there at
  /// this call. By default as `record_stream`.
  virtual void record_use(const Block& block, const Stream& stream) {
    record_stream(block, stream);
  }
  /// Says that a stream is destroyed, and what was queued there done. Blocks that were made for it
  /// stay on loan.
  virtual void stream_destroyed(const Stream& /*stream*/) noexcept {}
  /// Copies bytes that do not overlap, after the work queued on the memory; done when it returns.
  /// The default suits memory that the cpu can address.
  virtual void copy(void* to, const void* from, size_t bytes, Transfer direction);

  virtual MemoryStats stats() const = 0;
  virtual void reset_peak() = 0;
};

/// The allocator of a device: that of its type, or the one over its runtime's memory
/// (core/device/device_runtime.h), made when first asked for. Throws DeviceError when there is
/// neither.
Allocator& allocator(Device device);
/// Tells the allocator of the stream's device, where there is one by now, that it is destroyed.
void announce_destroyed(const Stream& stream) noexcept;
/// Makes `allocator` serve every device of `type`; it must live as long as the process.
/// Returns the one that served it before, or null. Call before any tensor of that type exists.
Allocator* set_allocator(DeviceType type, Allocator* allocator);

}  // namespace lockstep
