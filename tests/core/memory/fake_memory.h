#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "core/device/device_memory.h"

namespace lockstep {

/// Device memory with a budget and an injectable driver failure; checks that calls keep the
/// contract. Granules are ranges of a memory file, so their contents survive remapping.
class FakeMemory final : public DeviceMemory {
 public:
  static constexpr size_t kGranule = size_t{2} << 20;

  explicit FakeMemory(size_t total, bool has_granules = true)
      : total_(total), has_granules_(has_granules), file_(memfd_create("fake", MFD_CLOEXEC)) {}
  ~FakeMemory() override {
    for (const auto& [address, bytes] : ranges_) munmap(address, bytes);
    for (const auto& [address, bytes] : plain_) std::free(address);
    close(file_);
  }
  FakeMemory(const FakeMemory&) = delete;
  FakeMemory& operator=(const FakeMemory&) = delete;

  size_t total() const override { return total_; }
  size_t available() const override {
    const std::lock_guard guard(mutex_);
    return total_ - held();
  }

  void* allocate(size_t bytes) noexcept override {
    const std::lock_guard guard(mutex_);
    ++allocations;
    if (bytes > total_ - held() || fails(failing_allocations)) return nullptr;
    void* const address = std::aligned_alloc(512, bytes);
    plain_[address] = bytes;
    return address;
  }
  void release(void* address, size_t bytes) noexcept override {
    call_meanwhile();
    const std::lock_guard guard(mutex_);
    const auto found = plain_.find(address);
    if (found == plain_.end() || found->second != bytes) return wrong("release");
    plain_.erase(found);
    std::free(address);
  }

  size_t granularity() const override { return has_granules_ ? kGranule : 0; }
  void* reserve(size_t bytes) noexcept override {
    const std::lock_guard guard(mutex_);
    ++reservations;
    reserved_sizes.push_back(bytes);
    if (fails(failing_reservations)) return nullptr;
    void* const raw = mmap(nullptr, bytes + kGranule, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const auto begin = (reinterpret_cast<uintptr_t>(raw) + kGranule - 1) & ~(kGranule - 1);
    munmap(raw, begin - reinterpret_cast<uintptr_t>(raw));
    munmap(reinterpret_cast<void*>(begin + bytes),
           reinterpret_cast<uintptr_t>(raw) + kGranule - begin);
    ranges_[reinterpret_cast<void*>(begin)] = bytes;
    return reinterpret_cast<void*>(begin);
  }
  void unreserve(void* address, size_t bytes) noexcept override {
    const std::lock_guard guard(mutex_);
    if (ranges_.erase(address) == 0) return wrong("unreserve");
    for (const auto& [at, granule] : mapped_) {
      if (at >= reinterpret_cast<uintptr_t>(address) &&
          at < reinterpret_cast<uintptr_t>(address) + bytes) {
        return wrong("unreserve while mapped");
      }
    }
    munmap(address, bytes);
  }
  bool create(std::span<Granule> granules) noexcept override {
    const std::lock_guard guard(mutex_);
    ++creations;
    if (granules.size() * kGranule > total_ - held() || fails(failing_creations)) return false;
    for (Granule& granule : granules) {
      granule = ++last_granule_;
      granules_.insert(granule);
      if (ftruncate(file_, static_cast<off_t>(last_granule_ * kGranule)) != 0) std::abort();
    }
    return true;
  }
  void destroy(std::span<const Granule> granules) noexcept override {
    const std::lock_guard guard(mutex_);
    for (const Granule granule : granules) {
      if (granules_.erase(granule) == 0) wrong("destroy");
      for (const auto& [at, mapped] : mapped_) {
        if (mapped == granule) wrong("destroy while mapped");
      }
    }
  }
  bool maps_twice() const override { return twice; }
  bool map(void* address, std::span<const Granule> granules) noexcept override {
    const std::lock_guard guard(mutex_);
    ++maps;
    if (good_maps > 0) {
      --good_maps;
    } else if (fails(failing_maps)) {
      return false;
    }
    auto at = reinterpret_cast<uintptr_t>(address);
    for (const Granule granule : granules) {
      if (!granules_.contains(granule) || mapped_.contains(at)) wrong("map");
      for (const auto& [other, mapped] : mapped_) {
        if (mapped == granule && !twice) wrong("map twice");
      }
      mmap(reinterpret_cast<void*>(at), kGranule, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           file_, static_cast<off_t>((granule - 1) * kGranule));
      mapped_[at] = granule;
      at += kGranule;
    }
    return true;
  }
  void unmap(void* address, size_t bytes) noexcept override {
    call_meanwhile();
    const std::lock_guard guard(mutex_);
    ++unmaps;
    for (uintptr_t at = reinterpret_cast<uintptr_t>(address);
         at < reinterpret_cast<uintptr_t>(address) + bytes; at += kGranule) {
      if (mapped_.erase(at) == 0) wrong("unmap");
      mmap(reinterpret_cast<void*>(at), kGranule, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
  }
  void* allocate_pinned(size_t) noexcept override { return nullptr; }
  void release_pinned(void*, size_t) noexcept override {}

  /// Bytes that the allocator holds.
  size_t taken() const {
    const std::lock_guard guard(mutex_);
    return held();
  }

  /// Number of address ranges that are reserved.
  size_t ranges() const {
    const std::lock_guard guard(mutex_);
    return ranges_.size();
  }

  /// What other threads do while the next call gives memory back.
  std::function<void()> meanwhile;
  bool twice = false;           ///< whether a granule may be mapped at two addresses
  int failing_allocations = 0;  ///< number of next calls that fail; negative: all
  int failing_reservations = 0;
  int failing_creations = 0;
  int good_maps = 0;  ///< calls before those that fail
  int failing_maps = 0;
  int allocations = 0;
  int creations = 0;
  int maps = 0;
  int reservations = 0;
  int unmaps = 0;
  int wrong_calls = 0;  ///< calls that violate the contract
  const char* wrong_call = "";
  std::vector<size_t> reserved_sizes;  ///< bytes of each reservation that was asked for

 private:
  size_t held() const {
    size_t bytes = granules_.size() * kGranule;
    for (const auto& [address, size] : plain_) bytes += size;
    return bytes;
  }
  static bool fails(int& left) {
    if (left == 0) return false;
    if (left > 0) --left;
    return true;
  }
  void call_meanwhile() {
    if (const auto call = std::exchange(meanwhile, nullptr)) call();
  }
  void wrong(const char* call) {
    ++wrong_calls;
    wrong_call = call;
  }

  mutable std::mutex mutex_;
  size_t total_;
  bool has_granules_;
  int file_;
  Granule last_granule_ = 0;
  std::set<Granule> granules_;
  std::map<uintptr_t, Granule> mapped_;
  std::map<void*, size_t> ranges_;
  std::map<void*, size_t> plain_;
};

}  // namespace lockstep
