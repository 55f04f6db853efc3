#include "core/memory/cpu_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "core/memory/address_space.h"

namespace lockstep {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t whole_pages(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

/// Maps memory aligned to a huge page; null on failure.
void* map_aligned(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  const size_t wanted = whole_pages(bytes);
  void* const raw = mmap(nullptr, wanted + kHugePage, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = whole_pages(begin);
  if (aligned > begin) munmap(raw, aligned - begin);
  const size_t behind = begin + kHugePage - aligned;
  void* const address = reinterpret_cast<void*>(aligned);
  if (behind > 0) munmap(static_cast<std::byte*>(address) + wanted, behind);
  // Huge pages make the first touch some ten times cheaper; without them everything still works.
  (void)madvise(address, wanted, MADV_HUGEPAGE);
  return address;
}

}  // namespace

size_t cpu_memory_total() {
  // Twice the machine's memory leaves room for fragmentation; a lower `ulimit -v` is respected.
  size_t bytes =
      2 * static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<size_t>(bytes, limit.rlim_cur / 2);
  }
  return bytes;
}

size_t CpuMemory::available() const {
  const size_t held = held_.load(std::memory_order_relaxed);
  return total_ - std::min(held, total_);
}

bool CpuMemory::take(size_t bytes) noexcept {
  size_t held = held_.load(std::memory_order_relaxed);
  do {
    if (bytes > total_ - held) return false;
  } while (!held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
  return true;
}

void* CpuMemory::allocate(size_t bytes) noexcept {
  if (!take(bytes)) return nullptr;
  void* const address = map_aligned(bytes);
  if (address == nullptr) held_.fetch_sub(bytes, std::memory_order_relaxed);
  return address;
}

void CpuMemory::release(void* address, size_t bytes) noexcept {
  munmap(address, whole_pages(bytes));
  held_.fetch_sub(bytes, std::memory_order_relaxed);
}

void* CpuMemory::reserve(size_t bytes) noexcept {
  return may_reserve_addresses(bytes) ? map_aligned(bytes) : nullptr;
}

void CpuMemory::unreserve(void* address, size_t bytes) noexcept { munmap(address, bytes); }

bool CpuMemory::create(std::span<Granule> granules) noexcept {
  if (!take(granules.size() * granularity())) return false;
  std::ranges::fill(granules, Granule{1});
  return true;
}

void CpuMemory::destroy(std::span<const Granule> granules) noexcept {
  held_.fetch_sub(granules.size() * granularity(), std::memory_order_relaxed);
}

bool CpuMemory::map(void*, std::span<const Granule>) noexcept { return true; }

void CpuMemory::unmap(void* address, size_t bytes) noexcept {
  (void)madvise(address, bytes, MADV_DONTNEED);
}

}  // namespace lockstep
