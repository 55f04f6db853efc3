#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/device/device_memory.h"

namespace lockstep::host {

/// Memory of a host device: anonymous mappings, and granules, pieces of a file without a name that
/// are mapped at fixed addresses. Only the budget is taken when a piece is made; the machine gives
/// memory when it is first touched, and gets it back when the piece is destroyed.
///
/// A child made by fork() sees the mappings as they are, and what it writes stays its own; granules
/// that it maps are its own, too, and hold nothing of the parent's. Thread-safe.
class HostMemory final : public DeviceMemory {
 public:
  /// `budget` in bytes; `granule` a power of two of whole pages, or 0 for none.
  HostMemory(size_t budget, size_t granule);
  /// Mappings and reservations that are left stay as they are.
  ~HostMemory() override;

  size_t total() const override;
  size_t available() const override;
  void* allocate(size_t bytes) noexcept override;
  void release(void* address, size_t bytes) noexcept override;

  size_t granularity() const override { return file_ < 0 ? 0 : granule_; }
  void* reserve(size_t bytes) noexcept override;
  void unreserve(void* address, size_t bytes) noexcept override;
  bool create(std::span<Granule> granules) noexcept override;
  void destroy(std::span<const Granule> granules) noexcept override;
  bool map(void* address, std::span<const Granule> granules) noexcept override;
  void unmap(void* address, size_t bytes) noexcept override;

  void* allocate_pinned(size_t bytes) noexcept override;
  void release_pinned(void* address, size_t bytes) noexcept override;

  /// May lie below what is held: then nothing more is given.
  void set_budget(size_t bytes);
  /// Bytes of the file that the machine really holds.
  size_t resident() const;

  // Around fork().
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void leave_parent();

 private:
  /// A range of addresses and the granule at each of its places; 0 where nothing is mapped.
  struct Range {
    std::vector<Granule> granules;
  };

  bool take(size_t bytes);
  /// The places of `bytes` bytes from `address` on; empty unless they are reserved.
  std::span<Granule> places(void* address, size_t bytes);
  bool grow_file(size_t granules);
  bool map_run(std::byte* address, std::span<const Granule> run);
  off_t offset_of(Granule granule) const;

  const size_t granule_;
  int file_ = -1;
  mutable std::mutex mutex_;
  // All of these are guarded by mutex_.
  size_t budget_;
  size_t used_ = 0;
  std::map<std::byte*, Range> ranges_;  ///< by first address
  std::vector<Granule> free_;           ///< of those that were made once, the lowest last
  size_t made_ = 0;                     ///< granules that were ever made: 1 to made_
  size_t file_granules_ = 0;
};

}  // namespace lockstep::host
