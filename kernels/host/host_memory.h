#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "core/base/mutex.h"
#include "core/device/device_memory.h"

namespace lockstep::host {

/// Memory of a host device: anonymous mappings, and granules, which are pieces of an anonymous file
/// (memfd) that are mapped at fixed addresses. Creating a piece only charges the budget; the
/// machine backs it with memory on first touch, and gets the memory back when the piece is
/// destroyed.
///
/// A child made by fork() sees the mappings as they are, and its writes stay private; granules that
/// it maps are its own, too, and do not contain the parent's data. Thread-safe.
class HostMemory final : public DeviceMemory {
 public:
  /// `budget` in bytes; `granule` a power of two of whole pages, or 0 for none.
  HostMemory(size_t budget, size_t granule);
  /// Does not unmap remaining mappings and reservations.
  ~HostMemory() override;

  size_t total() const override;
  size_t available() const override;
  void* allocate(size_t bytes) noexcept override;
  void release(void* address, size_t bytes) noexcept override;

  bool maps_twice() const override { return true; }
  size_t granularity() const override { return file_ < 0 ? 0 : granule_; }
  void* reserve(size_t bytes) noexcept override;
  void unreserve(void* address, size_t bytes) noexcept override;
  bool create(std::span<Granule> granules) noexcept override;
  void destroy(std::span<const Granule> granules) noexcept override;
  bool map(void* address, std::span<const Granule> granules) noexcept override;
  void unmap(void* address, size_t bytes) noexcept override;

  void* allocate_pinned(size_t bytes) noexcept override;
  void release_pinned(void* address, size_t bytes) noexcept override;

  /// Sets the budget. It may be below the bytes in use: then allocations fail.
  void set_budget(size_t bytes);
  /// Bytes of the file that the machine has backed with memory.
  size_t resident() const;

  // For fork handlers.
  void lock() LS_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock() LS_RELEASE(mutex_) { mutex_.unlock(); }
  void leave_parent() LS_REQUIRES(mutex_);

 private:
  /// A reserved range: the granule at each place; 0 if nothing is mapped there.
  struct Range {
    std::vector<Granule> granules;
  };

  bool take(size_t bytes) LS_REQUIRES(mutex_);
  /// The places of `bytes` bytes from `address` on; empty unless they are reserved.
  std::span<Granule> places(void* address, size_t bytes) LS_REQUIRES(mutex_);
  bool grow_file(size_t granules) LS_REQUIRES(mutex_);
  bool map_run(std::byte* address, std::span<const Granule> run);
  off_t offset_of(Granule granule) const;

  const size_t granule_;
  int file_ = -1;  ///< needs no lock: it changes only in leave_parent, when there is one thread
  mutable Mutex mutex_;
  size_t budget_ LS_GUARDED_BY(mutex_);
  size_t used_ LS_GUARDED_BY(mutex_) = 0;
  std::map<std::byte*, Range> ranges_ LS_GUARDED_BY(mutex_);  ///< by first address
  /// Destroyed granules for reuse, in descending order.
  std::vector<Granule> free_ LS_GUARDED_BY(mutex_);
  size_t made_ LS_GUARDED_BY(mutex_) = 0;  ///< granules ever created: 1 to made_
  size_t file_granules_ LS_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::host
