#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include "core/device/device_memory.h"

namespace lockstep {

/// Device memory that only keeps books: its addresses must not be dereferenced. A call that
/// violates the contract of DeviceMemory throws std::logic_error (and so ends the program where the
/// call is noexcept). Thread-safe.
class BookMemory final : public DeviceMemory {
 public:
  explicit BookMemory(size_t total, size_t granularity = size_t{2} << 20)
      : total_(total), granularity_(granularity) {}

  size_t total() const override { return total_; }
  size_t available() const override {
    const std::lock_guard guard(mutex_);
    return total_ - used_;
  }

  void* allocate(size_t bytes) noexcept override {
    const std::lock_guard guard(mutex_);
    if (bytes > total_ - used_) return nullptr;
    used_ += bytes;
    return new_range(plain_, bytes);
  }
  void release(void* address, size_t bytes) noexcept override {
    const std::lock_guard guard(mutex_);
    take_range(plain_, address, bytes);
    used_ -= bytes;
  }

  size_t granularity() const override { return granularity_; }
  void* reserve(size_t bytes) noexcept override {
    const std::lock_guard guard(mutex_);
    return new_range(reserved_, whole(bytes));
  }
  void unreserve(void* address, size_t bytes) noexcept override {
    const std::lock_guard guard(mutex_);
    take_range(reserved_, address, whole(bytes));
    const auto begin = reinterpret_cast<uintptr_t>(address);
    const auto at = mapped_.lower_bound(begin);
    require(at == mapped_.end() || at->first >= begin + bytes, "unreserved while mapped");
  }
  bool create(std::span<Granule> granules) noexcept override {
    const std::lock_guard guard(mutex_);
    if (granules.size() * granularity_ > total_ - used_) return false;
    used_ += granules.size() * granularity_;
    for (Granule& granule : granules) granules_.insert(granule = ++last_granule_);
    return true;
  }
  void destroy(std::span<const Granule> granules) noexcept override {
    const std::lock_guard guard(mutex_);
    used_ -= granules.size() * granularity_;
    for (const Granule granule : granules) {
      require(granules_.erase(granule) == 1, "destroyed a granule that is none");
      require(places_.count(granule) == 0, "destroyed a granule that is mapped");
    }
  }
  bool map(void* address, std::span<const Granule> granules) noexcept override {
    const std::lock_guard guard(mutex_);
    auto at = reinterpret_cast<uintptr_t>(address);
    for (const Granule granule : granules) {
      require(granules_.count(granule) == 1, "mapped a granule that is none");
      require(places_.insert(granule).second, "mapped a granule twice");
      require(mapped_.emplace(at, granule).second, "mapped over a mapping");
      at += granularity_;
    }
    return true;
  }
  void unmap(void* address, size_t bytes) noexcept override {
    const std::lock_guard guard(mutex_);
    const auto begin = reinterpret_cast<uintptr_t>(address);
    for (uintptr_t at = begin; at < begin + whole(bytes); at += granularity_) {
      const auto found = mapped_.find(at);
      require(found != mapped_.end(), "unmapped what was not mapped");
      places_.erase(found->second);
      mapped_.erase(found);
    }
  }

  void* allocate_pinned(size_t) noexcept override { return nullptr; }
  void release_pinned(void*, size_t) noexcept override {}

  size_t used() const {
    const std::lock_guard guard(mutex_);
    return used_;
  }

 private:
  using Ranges = std::map<uintptr_t, size_t>;

  static void require(bool kept, const char* what) {
    if (!kept) throw std::logic_error(std::string("[book memory] ") + what);
  }
  size_t whole(size_t bytes) const {
    require(bytes % granularity_ == 0, "not a whole number of granules");
    return bytes;
  }
  void* new_range(Ranges& ranges, size_t bytes) {
    const uintptr_t begin = next_;
    // Leaves a gap between ranges, so that no two are ever adjacent.
    next_ = (next_ + bytes + (size_t{4} << 20)) / (size_t{2} << 20) * (size_t{2} << 20);
    ranges.emplace(begin, bytes);
    return reinterpret_cast<void*>(begin);
  }
  static void take_range(Ranges& ranges, void* address, size_t bytes) {
    const auto found = ranges.find(reinterpret_cast<uintptr_t>(address));
    require(found != ranges.end() && found->second == bytes, "gave back what was not taken");
    ranges.erase(found);
  }

  const size_t total_;
  const size_t granularity_;
  mutable std::mutex mutex_;
  size_t used_ = 0;
  uintptr_t next_ = uintptr_t{1} << 40;
  Ranges plain_;
  Ranges reserved_;
  std::map<uintptr_t, Granule> mapped_;
  std::set<Granule> granules_;
  std::set<Granule> places_;  // granules that are mapped
  Granule last_granule_ = 0;
};

}  // namespace lockstep
