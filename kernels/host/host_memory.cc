#include "kernels/host/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <new>

#include "core/memory/address_space.h"
#include "kernels/host/host_faults.h"

namespace lockstep::host {

namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr int kNoMemory = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

size_t machine_memory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t whole_pages(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

void* map_anonymous(size_t bytes) {
  void* const address =
      mmap(nullptr, bytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

/// Unmaps the memory, but keeps the addresses reserved. Fails only if the system has no room for
/// another mapping.
bool clear(void* address, size_t bytes) {
  return mmap(address, bytes, PROT_NONE, kNoMemory | MAP_FIXED, -1, 0) != MAP_FAILED;
}

int make_file() { return memfd_create("lockstep-host", MFD_CLOEXEC); }

/// Calls `visit(first, count)` for each maximal run of consecutive granules; each 0 is a run alone.
template <class Visit>
bool each_run(std::span<const Granule> granules, const Visit& visit) {
  for (size_t first = 0; first < granules.size();) {
    size_t count = 1;
    while (granules[first] != 0 && first + count < granules.size() &&
           granules[first + count] == granules[first] + count) {
      ++count;
    }
    if (!visit(first, count)) return false;
    first += count;
  }
  return true;
}

}  // namespace

HostMemory::HostMemory(size_t budget, size_t granule)
    : granule_(granule), file_(granule == 0 ? -1 : make_file()), budget_(budget) {}

HostMemory::~HostMemory() {
  if (file_ >= 0) (void)close(file_);
}

size_t HostMemory::total() const {
  const MutexLock lock(mutex_);
  return budget_;
}

size_t HostMemory::available() const {
  const MutexLock lock(mutex_);
  return budget_ - std::min(budget_, used_);
}

void HostMemory::set_budget(size_t bytes) {
  const MutexLock lock(mutex_);
  budget_ = bytes;
}

size_t HostMemory::resident() const {
  struct stat state {};
  if (file_ < 0 || fstat(file_, &state) != 0) return 0;
  return static_cast<size_t>(state.st_blocks) * 512;
}

bool HostMemory::take(size_t bytes) {
  if (used_ > budget_ || bytes > budget_ - used_) return false;
  used_ += bytes;
  return true;
}

void* HostMemory::allocate(size_t bytes) noexcept {
  if (bytes == 0 || should_fail(HostFault::kAllocate)) return nullptr;
  const MutexLock lock(mutex_);
  if (!take(bytes)) return nullptr;
  void* const address = map_anonymous(whole_pages(bytes));
  if (address == nullptr) used_ -= bytes;
  return address;
}

void HostMemory::release(void* address, size_t bytes) noexcept {
  if (address == nullptr) return;
  (void)munmap(address, whole_pages(bytes));
  const MutexLock lock(mutex_);
  used_ -= bytes;
}

void* HostMemory::reserve(size_t bytes) noexcept {
  if (file_ < 0 || bytes == 0 || bytes % granule_ != 0 || bytes > SIZE_MAX / 2 ||
      !may_reserve_addresses(bytes) || should_fail(HostFault::kReserve)) {
    return nullptr;
  }
  // One granule more, so that it contains an aligned range.
  void* const found = mmap(nullptr, bytes + granule_, PROT_NONE, kNoMemory, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(found);
  const uintptr_t aligned = (start + granule_ - 1) / granule_ * granule_;
  auto* const address = reinterpret_cast<std::byte*>(aligned);
  if (aligned != start) (void)munmap(found, aligned - start);
  (void)munmap(address + bytes, start + granule_ - aligned);
  try {
    const MutexLock lock(mutex_);
    ranges_[address].granules.resize(bytes / granule_);
  } catch (const std::bad_alloc&) {
    (void)munmap(address, bytes);
    return nullptr;
  }
  return address;
}

void HostMemory::unreserve(void* address, size_t bytes) noexcept {
  const MutexLock lock(mutex_);
  const std::span<Granule> range = places(address, bytes);
  if (range.empty() || std::ranges::any_of(range, [](Granule g) { return g != 0; })) return;
  ranges_.erase(static_cast<std::byte*>(address));
  (void)munmap(address, bytes);
}

std::span<Granule> HostMemory::places(void* address, size_t bytes) {
  auto* const first = static_cast<std::byte*>(address);
  auto range = ranges_.upper_bound(first);
  if (range == ranges_.begin()) return {};
  --range;
  const auto offset = static_cast<size_t>(first - range->first);
  std::span<Granule> all = range->second.granules;
  if (offset % granule_ != 0 || bytes % granule_ != 0) return {};
  if (offset + bytes > all.size() * granule_) return {};
  return all.subspan(offset / granule_, bytes / granule_);
}

bool HostMemory::grow_file(size_t granules) {
  if (granules <= file_granules_) return true;
  // Parts of the file that were never touched take no memory, so growing ahead is free.
  const size_t wanted = std::max(granules, 2 * file_granules_);
  if (ftruncate(file_, static_cast<off_t>(wanted * granule_)) != 0) return false;
  file_granules_ = wanted;
  return true;
}

bool HostMemory::create(std::span<Granule> granules) noexcept {
  if (file_ < 0) return false;
  bool fails = false;
  for (size_t i = 0; i < granules.size(); ++i) fails |= should_fail(HostFault::kCreate);
  const MutexLock lock(mutex_);
  const size_t count = granules.size();
  const size_t again = std::min(count, free_.size());
  if (fails || count > budget_ / granule_) return false;
  try {
    // Reserve now, so that `destroy` never allocates.
    if (free_.capacity() < made_ + count) free_.reserve(2 * (made_ + count));
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (!grow_file(made_ + count - again) || !take(count * granule_)) return false;
  for (Granule& granule : granules.first(again)) {
    granule = free_.back();
    free_.pop_back();
  }
  for (Granule& granule : granules.subspan(again)) granule = ++made_;
  return true;
}

void HostMemory::destroy(std::span<const Granule> granules) noexcept {
  const MutexLock lock(mutex_);
  (void)each_run(granules, [&](size_t first, size_t count) {
    (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(granules[first]),
                    static_cast<off_t>(count * granule_));
    return true;
  });
  // Reuse the lowest granules first: consecutive granules need fewer mappings.
  free_.insert(free_.end(), granules.begin(), granules.end());
  std::ranges::sort(free_, std::greater<>());
  used_ -= granules.size() * granule_;
}

off_t HostMemory::offset_of(Granule granule) const {
  return static_cast<off_t>((granule - 1) * granule_);
}

bool HostMemory::map_run(std::byte* address, std::span<const Granule> run) {
  // With an injected fault, map the granules before it, like a driver that fails half way.
  size_t count = 0;
  while (count < run.size() && !should_fail(HostFault::kMap)) ++count;
  if (count != 0 && mmap(address, count * granule_, kReadWrite, MAP_SHARED | MAP_FIXED, file_,
                         offset_of(run[0])) == MAP_FAILED) {
    return false;
  }
  return count == run.size();
}

bool HostMemory::map(void* address, std::span<const Granule> granules) noexcept {
  if (granules.empty()) return true;
  const MutexLock lock(mutex_);
  const size_t bytes = granules.size() * granule_;
  const std::span<Granule> range = places(address, bytes);
  const bool known =
      std::ranges::all_of(granules, [&](Granule g) LS_REQUIRES(mutex_) { return g - 1 < made_; });
  if (range.empty() || !known || std::ranges::any_of(range, [](Granule g) { return g != 0; })) {
    return false;
  }
  auto* const first = static_cast<std::byte*>(address);
  const bool mapped = each_run(granules, [&](size_t at, size_t count) {
    return map_run(first + at * granule_, granules.subspan(at, count));
  });
  if (!mapped) {
    (void)clear(address, bytes);
    return false;
  }
  std::ranges::copy(granules, range.begin());
  return true;
}

void HostMemory::unmap(void* address, size_t bytes) noexcept {
  const MutexLock lock(mutex_);
  const std::span<Granule> range = places(address, bytes);
  if (range.empty() || !clear(address, bytes)) return;
  std::ranges::fill(range, Granule{0});
}

void* HostMemory::allocate_pinned(size_t bytes) noexcept {
  if (bytes == 0 || bytes > machine_memory() || should_fail(HostFault::kPinned)) return nullptr;
  void* const address = map_anonymous(whole_pages(bytes));
  // If the system does not allow locking memory, copies are slower but still work.
  if (address != nullptr) (void)mlock2(address, whole_pages(bytes), MLOCK_ONFAULT);
  return address;
}

void HostMemory::release_pinned(void* address, size_t bytes) noexcept {
  if (address != nullptr) (void)munmap(address, whole_pages(bytes));
}

void HostMemory::leave_parent() {
  if (file_ < 0) return;
  for (auto& [address, range] : ranges_) {
    const std::span<const Granule> granules = range.granules;
    (void)each_run(granules, [&, start = address](size_t first, size_t count) {
      if (granules[first] == 0) return true;
      (void)mmap(start + first * granule_, count * granule_, kReadWrite, MAP_PRIVATE | MAP_FIXED,
                 file_, offset_of(granules[first]));
      return true;
    });
  }
  (void)close(file_);
  file_ = make_file();
  if (file_ >= 0) (void)ftruncate(file_, static_cast<off_t>(file_granules_ * granule_));
}

}  // namespace lockstep::host
