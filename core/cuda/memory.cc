#include "core/cuda/memory.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/cuda/error.h"

/// Calls a function of the driver with the device's context current; returns whether it succeeded.
#define LS_CUDA_TRY(function, ...) attempt(#function, driver_.function, __VA_ARGS__)

namespace lockstep::cuda {

namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kLargestGranule = size_t{32} << 20;
/// Memory is ample for granules of which it has at least as many as this: the rest of a granule
/// that each stream leaves unused is a small part of it then.
constexpr size_t kAmple = 4096;

size_t granule_for(size_t least, size_t total) {
  size_t granule = least;
  while (granule < kLargestGranule && 2 * granule <= total / kAmple) granule *= 2;
  return granule;
}

/// The kinds of memory that the device supports by its attributes, the most able one first.
std::vector<CUmemAllocationProp> supported_kinds(const Context& context) {
  CUmemAllocationProp plain{};
  plain.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  plain.location = {CU_MEM_LOCATION_TYPE_DEVICE, context.device()};
  std::vector<CUmemAllocationProp> kinds{plain};
  if (context.attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0) {
    kinds.push_back(kinds.back());
    kinds.back().requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  if (context.attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) != 0) {
    kinds.push_back(kinds.back());
    kinds.back().allocFlags.gpuDirectRDMACapable = 1;
  }
  std::ranges::reverse(kinds);
  return kinds;
}

/// Whether the driver refuses memory of such a kind, rather than having none left.
bool is_refusal(CUresult result) {
  return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED ||
         result == CUDA_ERROR_INVALID_VALUE;
}

CUdeviceptr address_of(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }
void* pointer_to(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace

Memory::Memory(Context& context) : context_(context), driver_(context.driver()) {
  LS_CUDA(driver_, cuDeviceTotalMem, &total_, context_.device());
  if (context_.attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0) return;
  kinds_ = supported_kinds(context_);
  LS_CUDA(driver_, cuMemGetAllocationGranularity, &granularity_, &kinds_.front(),
          CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  LS_CHECK(std::has_single_bit(granularity_), DeviceError,
           "[cuda] cuMemGetAllocationGranularity gives {} bytes: expected a power of two.",
           granularity_);
  granularity_ = granule_for(granularity_, total_);
  users_.push_back({kinds_.front().location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
}

size_t Memory::available() const {
  const ContextGuard guard(context_);
  {
    const MutexLock lock(mutex_);
    LS_CHECK(failure_.empty(), DeviceError, "{}", std::exchange(failure_, {}));
  }
  size_t free = 0;
  size_t total = 0;
  LS_CUDA(driver_, cuMemGetInfo, &free, &total);
  return free;
}

void* Memory::allocate(size_t bytes) noexcept {
  CUdeviceptr address = 0;
  if (bytes == 0 || !LS_CUDA_TRY(cuMemAlloc, &address, bytes)) return nullptr;
  if (address % kAlignment != 0) {
    keep("[cuda] cuMemAlloc gave memory that is not aligned to 512 bytes. Please report this.");
    release(pointer_to(address), bytes);
    return nullptr;
  }
  return pointer_to(address);
}

void Memory::release(void* address, size_t) noexcept {
  if (address != nullptr) LS_CUDA_TRY(cuMemFree, address_of(address));
}

void* Memory::reserve(size_t bytes) noexcept {
  CUdeviceptr address = 0;
  const bool made = LS_CUDA_TRY(cuMemAddressReserve, &address, bytes, granularity_, 0, 0);
  return made ? pointer_to(address) : nullptr;
}

void Memory::unreserve(void* address, size_t bytes) noexcept {
  LS_CUDA_TRY(cuMemAddressFree, address_of(address), bytes);
}

bool Memory::create(std::span<Granule> granules) noexcept {
  for (size_t i = 0; i < granules.size(); ++i) {
    if (!create(granules[i])) {
      destroy(granules.first(i));
      std::ranges::fill(granules.first(i), 0);
      return false;
    }
  }
  return true;
}

bool Memory::create(Granule& granule) noexcept {
  CUmemGenericAllocationHandle handle = 0;
  const size_t last = kinds_.size() - 1;
  const size_t first = kind_.load();
  size_t kind = first;
  for (; kind < last; ++kind) {
    // An attribute of the device promises what a container or another program may still prevent.
    const auto result = call(driver_.cuMemCreate, &handle, granularity_, &kinds_[kind], 0);
    if (result == CUDA_SUCCESS) break;
    if (!result || !is_refusal(*result)) {
      note(result, "cuMemCreate");
      return false;
    }
  }
  if (kind == last && !LS_CUDA_TRY(cuMemCreate, &handle, granularity_, &kinds_[last], 0)) {
    return false;
  }
  if (kind != first) kind_.store(kind);
  granule = handle;
  return true;
}

void Memory::destroy(std::span<const Granule> granules) noexcept {
  for (size_t i = granules.size(); i-- > 0;) LS_CUDA_TRY(cuMemRelease, granules[i]);
}

bool Memory::map(void* address, std::span<const Granule> granules) noexcept {
  const CUdeviceptr begin = address_of(address);
  for (size_t i = 0; i < granules.size(); ++i) {
    if (!LS_CUDA_TRY(cuMemMap, begin + i * granularity_, granularity_, 0, granules[i], 0)) {
      unmap(address, i * granularity_);
      return false;
    }
  }
  const size_t bytes = granules.size() * granularity_;
  if (bytes != 0 && !give_access(begin, bytes)) {
    unmap(address, bytes);
    return false;
  }
  return true;
}

bool Memory::give_access(CUdeviceptr begin, size_t bytes) noexcept {
  if (context_.lost_in_fork()) return false;
  std::vector<CUmemAccessDesc> users;
  try {
    const MutexLock lock(mapped_mutex_);
    users = users_;
    mapped_.add(begin, begin + bytes);  // peers that come later get access from `open_to`
  } catch (const std::bad_alloc&) {
    return false;
  }
  return LS_CUDA_TRY(cuMemSetAccess, begin, bytes, users.data(), users.size());
}

void Memory::open_to(CUdevice peer) {
  if (granularity_ == 0) return;
  const ContextGuard guard(context_);
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, peer},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const MutexLock lock(mapped_mutex_);
  for (const CUmemAccessDesc& user : users_) {
    if (user.location.id == peer) return;
  }
  for (const auto& [begin, end] : mapped_) {
    LS_CUDA(driver_, cuMemSetAccess, begin, end - begin, &access, 1);
  }
  users_.push_back(access);
}

void Memory::unmap(void* address, size_t bytes) noexcept {
  if (bytes == 0 || context_.lost_in_fork()) return;
  const CUdeviceptr begin = address_of(address);
  try {
    const MutexLock lock(mapped_mutex_);
    mapped_.remove(begin, begin + bytes);
  } catch (const std::bad_alloc&) {
    // A peer that comes later then fails to get access, and copies go through the cpu's memory.
  }
  // One call unmaps any number of whole adjacent mappings.
  LS_CUDA_TRY(cuMemUnmap, begin, bytes);
}

void* Memory::allocate_pinned(size_t bytes) noexcept {
  void* address = nullptr;
  const bool made =
      bytes != 0 && LS_CUDA_TRY(cuMemHostAlloc, &address, bytes, CU_MEMHOSTALLOC_PORTABLE);
  return made ? address : nullptr;
}

void Memory::release_pinned(void* address, size_t) noexcept {
  if (address != nullptr) LS_CUDA_TRY(cuMemFreeHost, address);
}

template <class... Parameters, class... Arguments>
std::optional<CUresult> Memory::call(CUresult (*function)(Parameters...),
                                     Arguments... arguments) noexcept {
  if (context_.lost_in_fork()) return std::nullopt;
  try {
    const ContextGuard guard(context_);
    return function(arguments...);
  } catch (const std::exception& failure) {
    keep(failure.what());
    return std::nullopt;
  }
}

template <class... Parameters, class... Arguments>
bool Memory::attempt(const char* name, CUresult (*function)(Parameters...),
                     Arguments... arguments) noexcept {
  const std::optional<CUresult> result = call(function, arguments...);
  note(result, name);
  return result == CUDA_SUCCESS;
}

void Memory::note(std::optional<CUresult> result, const char* name) noexcept {
  if (!result || *result == CUDA_SUCCESS || *result == CUDA_ERROR_OUT_OF_MEMORY) return;
  try {
    keep(failure(driver_, *result, name));
  } catch (const std::bad_alloc&) {
    // The return value alone must do then.
  }
}

void Memory::keep(std::string_view failure) noexcept {
  try {
    const MutexLock lock(mutex_);
    // Keep the first failure: it is the cause of later ones.
    if (failure_.empty()) failure_ = failure;
  } catch (const std::bad_alloc&) {
    // The return value alone must do then.
  }
}

#undef LS_CUDA_TRY

}  // namespace lockstep::cuda
