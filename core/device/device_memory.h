#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// A piece of physical memory, one granule large, that may be mapped at an address. 0 is none.
using Granule = uint64_t;

/// The memory of one device, below the caching allocator: what a driver offers. Every call may be
/// slow, and `unmap`, `release` and `destroy` must come after the work that uses the memory.
///
/// Failing to get memory is an answer, not an exception: the caller has other ways left. After a
/// failed call nothing has changed. Thread-safe.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// Bytes that the device has, or that its budget allows.
  virtual size_t total() const = 0;
  /// Of these, bytes that nobody holds.
  virtual size_t available() const = 0;

  /// A range of its own, aligned to 512 bytes; null when there is no memory for it.
  virtual void* allocate(size_t bytes) noexcept = 0;
  virtual void release(void* address, size_t bytes) noexcept = 0;

  /// Bytes of one granule, a power of two; 0 where addresses and memory cannot be had apart. Then
  /// none of the calls below may be made.
  virtual size_t granularity() const = 0;
  /// A range of addresses without memory, aligned to a granule; null when refused. `bytes` is a
  /// multiple of the granularity, as everywhere below.
  virtual void* reserve(size_t bytes) noexcept = 0;
  /// Gives back a whole reserved range, of which nothing is mapped any more.
  virtual void unreserve(void* address, size_t bytes) noexcept = 0;
  /// Fills `granules` with new ones; false, and none is made, when there is not enough memory.
  virtual bool create(std::span<Granule> granules) noexcept = 0;
  virtual void destroy(std::span<const Granule> granules) noexcept = 0;
  /// Maps the granules side by side from `address` on, readable and writable. False when the driver
  /// fails half way: what was mapped has been unmapped again.
  virtual bool map(void* address, std::span<const Granule> granules) noexcept = 0;
  /// Takes the memory away from a range that is mapped throughout; the granules live on, and so do
  /// their contents except on `cpu`.
  virtual void unmap(void* address, size_t bytes) noexcept = 0;

  /// Memory of the cpu that copies to and from the device can use directly; null when refused.
  virtual void* allocate_pinned(size_t bytes) noexcept = 0;
  virtual void release_pinned(void* address, size_t bytes) noexcept = 0;
};

}  // namespace lockstep
