#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// A handle of physical memory, one granule large, that can be mapped at an address. 0 means none.
using Granule = uint64_t;

/// The memory of one device as its driver offers it, below the caching allocator. Every call may be
/// slow. `unmap`, `release` and `destroy` must come after the work that uses the memory.
///
/// A failure to get memory is a return value, not an exception, because the caller has other
/// options left. A failed call changes nothing. Thread-safe.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// Bytes of memory that the device has, or that its budget allows.
  virtual size_t total() const = 0;
  /// Bytes of `total` that are not in use.
  virtual size_t available() const = 0;

  /// What blocks are aligned to, and their sizes are multiples of, in bytes: a power of two of at
  /// least 64. The default is PyTorch's kMinBlockSize, which serves every vector access and copy of
  /// a GPU.
  virtual size_t block_unit() const { return 512; }
  /// Allocates a range, aligned to 512 bytes; null if there is not enough memory.
  virtual void* allocate(size_t bytes) noexcept = 0;
  virtual void release(void* address, size_t bytes) noexcept = 0;

  /// Size of a granule in bytes, a power of two; 0 if the device cannot reserve addresses and map
  /// memory separately. Then none of the calls below may be made.
  virtual size_t granularity() const = 0;
  /// Reserves a range of addresses without memory, aligned to a granule; null on failure. `bytes`
  /// is a multiple of the granularity, here and below.
  virtual void* reserve(size_t bytes) noexcept = 0;
  /// Frees a whole reserved range, in which nothing may be mapped.
  virtual void unreserve(void* address, size_t bytes) noexcept = 0;
  /// Fills `granules` with new ones. Returns false, and makes none, if there is not enough memory.
  virtual bool create(std::span<Granule> granules) noexcept = 0;
  virtual void destroy(std::span<const Granule> granules) noexcept = 0;
  /// Whether a granule may be mapped at a second address while work still uses it at the first, if
  /// what is queued later alone uses the second.
  virtual bool maps_twice() const { return false; }
  /// Maps the granules side by side from `address` on, readable and writable. Returns false if the
  /// driver fails half way, after unmapping what was mapped.
  virtual bool map(void* address, std::span<const Granule> granules) noexcept = 0;
  /// Unmaps a range that is mapped throughout. The granules stay allocated and, except on `cpu`,
  /// keep their contents.
  virtual void unmap(void* address, size_t bytes) noexcept = 0;

  /// Allocates pinned (page-locked) cpu memory for direct copies to and from the device; null on
  /// failure.
  virtual void* allocate_pinned(size_t bytes) noexcept = 0;
  virtual void release_pinned(void* address, size_t bytes) noexcept = 0;
};

}  // namespace lockstep
