// The functions of FakeDriver's table for memory and addresses.

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "tests/emulation/fake_driver.h"
#include "tests/emulation/fake_driver_entry.h"
#include "tests/emulation/shared_memory.h"

namespace lockstep::cuda {

struct FakeDriver::MemoryCalls {
  static CUresult info(size_t* free, size_t* total) {
    LS_FAKE_DEVICE("cuMemGetInfo");
    *free = fake.memory_ - fake.used_;
    *total = fake.memory_;
    return CUDA_SUCCESS;
  }
  static CUresult granularity(size_t* bytes, const CUmemAllocationProp* properties,
                              CUmemAllocationGranularity_flags) {
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    *bytes = kGranule;
    return CUDA_SUCCESS;
  }
  static CUresult allocate(CUdeviceptr* address, size_t bytes) {
    LS_FAKE_DEVICE("cuMemAlloc");
    if (bytes > fake.memory_ - fake.used_) return CUDA_ERROR_OUT_OF_MEMORY;
    void* const made = std::aligned_alloc(4096, (bytes + 8191) / 4096 * 4096);
    *address = reinterpret_cast<CUdeviceptr>(made) + fake.pointer_offset_;
    if (fake.stands_in_) {
      std::memset(pointer_to(*address), emulation::kUnwritten, bytes);
      mprotect(made, bytes, fake.reach());
    }
    fake.plain_[*address] = {bytes, fake.device_of(current_)};
    fake.used_ += bytes;
    return CUDA_SUCCESS;
  }
  static CUresult release(CUdeviceptr address) {
    LS_FAKE_DEVICE("cuMemFree");
    const auto found = fake.plain_.find(address);
    if (found == fake.plain_.end()) return fake.refuse("frees what it was not given");
    const size_t bytes = found->second.bytes;
    if (fake.stands_in_) mprotect(pointer_to(address), bytes, PROT_READ | PROT_WRITE);
    fake.used_ -= bytes;
    fake.plain_.erase(found);
    std::free(pointer_to(address - fake.pointer_offset_));
    return CUDA_SUCCESS;
  }
  static CUresult allocate_host(void** address, size_t bytes, unsigned flags) {
    LS_FAKE_DEVICE("cuMemHostAlloc");
    if ((flags & CU_MEMHOSTALLOC_PORTABLE) == 0) return fake.refuse("pinned for one device only");
    *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    fake.pinned_.insert(*address);
    return CUDA_SUCCESS;
  }
  static CUresult release_host(void* address) {
    LS_FAKE_DEVICE("cuMemFreeHost");
    if (fake.pinned_.erase(address) == 0) return fake.refuse("frees memory that is not pinned");
    std::free(address);
    return CUDA_SUCCESS;
  }
  static CUresult reserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                          unsigned long long) {
    LS_FAKE("cuMemAddressReserve");
    if (bytes == 0 || bytes % kGranule != 0 || (alignment & (alignment - 1)) != 0) {
      return fake.refuse("reserves a size that is not of granules");
    }
    alignment = std::max(alignment, kGranule);
    void* const got = mmap(nullptr, bytes + alignment, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto begin = reinterpret_cast<CUdeviceptr>(got);
    *address = (begin + alignment - 1) / alignment * alignment;
    // Keeps only the aligned range.
    if (*address != begin) munmap(got, *address - begin);
    if (const size_t rest = begin + alignment - *address; rest != 0) {
      munmap(pointer_to(*address + bytes), rest);
    }
    fake.ranges_[*address] = bytes;
    return CUDA_SUCCESS;
  }
  static CUresult unreserve(CUdeviceptr address, size_t bytes) {
    LS_FAKE("cuMemAddressFree");
    const auto found = fake.ranges_.find(address);
    if (found == fake.ranges_.end() || found->second != bytes) {
      return fake.refuse("gives back another range than it reserved");
    }
    const auto mapping = fake.mapped_.lower_bound(address);
    if (mapping != fake.mapped_.end() && mapping->first < address + bytes) {
      return fake.refuse("gives back a range with memory in it");
    }
    munmap(pointer_to(address), bytes);
    fake.ranges_.erase(found);
    return CUDA_SUCCESS;
  }
  static CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes,
                         const CUmemAllocationProp* properties, unsigned long long) {
    LS_FAKE("cuMemCreate");
    if (bytes == 0 || bytes % kGranule != 0 || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
      return fake.refuse("makes something that is no granule");
    }
    const bool is_exportable = properties->requestedHandleTypes != 0;
    const bool is_rdma_capable = properties->allocFlags.gpuDirectRDMACapable != 0;
    if ((is_exportable && !fake.is_exportable_) || (is_rdma_capable && !fake.is_rdma_capable_)) {
      return fake.refuse("wants memory of a kind that the device does not support");
    }
    if (is_rdma_capable && fake.rdma_result_ != CUDA_SUCCESS) return fake.rdma_result_;
    if (is_exportable && fake.exportable_result_ != CUDA_SUCCESS) return fake.exportable_result_;
    if (bytes > fake.memory_ - fake.used_) return CUDA_ERROR_OUT_OF_MEMORY;
    Made made{0, bytes / kGranule, *properties};
    // Reuses freed granules first, to reveal code that depends on old contents.
    const auto reused =
        std::ranges::find(fake.free_places_, made.units, &std::pair<size_t, size_t>::second);
    if (reused != fake.free_places_.end()) {
      made.place = reused->first;
      fake.free_places_.erase(reused);
    } else {
      made.place = fake.end_place_;
      const size_t end = made.place + made.units;
      if (ftruncate(fake.file_, static_cast<off_t>(end * kGranule)) != 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
      }
      fake.end_place_ = end;
    }
    if (fake.stands_in_) fake.unwrite(made);
    *handle = fake.next_++;
    fake.granules_[*handle] = made;
    fake.used_ += bytes;
    return CUDA_SUCCESS;
  }
  static CUresult destroy(CUmemGenericAllocationHandle handle) {
    LS_FAKE("cuMemRelease");
    const bool in_use = std::ranges::any_of(
        fake.mapped_, [&](const auto& mapping) { return mapping.second.granule == handle; });
    if (in_use) return fake.refuse("destroys a granule that is mapped");
    const auto found = fake.granules_.find(handle);
    if (found == fake.granules_.end()) return fake.refuse("destroys no granule");
    fake.free_places_.emplace_back(found->second.place, found->second.units);
    fake.used_ -= found->second.units * kGranule;
    fake.granules_.erase(found);
    return CUDA_SUCCESS;
  }
  static CUresult map(CUdeviceptr address, size_t bytes, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long) {
    LS_FAKE("cuMemMap");
    auto range = fake.ranges_.upper_bound(address);
    if (range == fake.ranges_.begin()) return fake.refuse("maps outside its ranges");
    --range;
    const auto made = fake.granules_.find(handle);
    const auto next = fake.mapped_.lower_bound(address);
    if (address + bytes > range->first + range->second || address % kGranule != 0 ||
        made == fake.granules_.end() || bytes != made->second.units * kGranule || offset != 0 ||
        (next != fake.mapped_.end() && next->first < address + bytes)) {
      return fake.refuse("maps what it has not, or where it may not");
    }
    void* const got = mmap(pointer_to(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                           fake.file_, static_cast<off_t>(made->second.place * kGranule));
    if (got == MAP_FAILED) return CUDA_ERROR_UNKNOWN;
    for (size_t unit = 0; unit < made->second.units; ++unit) {
      fake.mapped_[address + unit * kGranule] = {handle, unit, {}};
    }
    return CUDA_SUCCESS;
  }
  static CUresult set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access,
                             size_t count) {
    LS_FAKE("cuMemSetAccess");
    for (CUdeviceptr at = address; at < address + bytes; at += kGranule) {
      const auto found = fake.mapped_.find(at);
      if (found == fake.mapped_.end()) return fake.refuse("gives access to a range without memory");
      const int owner = fake.granules_.at(found->second.granule).properties.location.id;
      for (const CUmemAccessDesc& user : std::span(access, count)) {
        if (user.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
          return fake.refuse("gives other access than reading and writing");
        }
        if (user.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            (user.location.id != owner && !fake.has_peers_)) {
          return fake.refuse("gives access to what does not reach the memory");
        }
        found->second.users.insert(user.location.id);
      }
    }
    mprotect(pointer_to(address), bytes, fake.reach());
    return CUDA_SUCCESS;
  }
  static CUresult unmap(CUdeviceptr address, size_t bytes) {
    LS_FAKE("cuMemUnmap");
    for (CUdeviceptr at = address; at < address + bytes; at += kGranule) {
      if (!fake.mapped_.contains(at)) return fake.refuse("unmaps a range with holes");
    }
    const auto after = fake.mapped_.find(address + bytes);
    if (fake.mapped_.at(address).unit != 0 ||
        (after != fake.mapped_.end() && after->second.unit != 0)) {
      return fake.refuse("unmaps a part of a mapping");
    }
    fake.mapped_.erase(fake.mapped_.lower_bound(address),
                       fake.mapped_.lower_bound(address + bytes));
    mmap(pointer_to(address), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return CUDA_SUCCESS;
  }

  static void add_to(Driver& driver) {
    driver.cuMemAddressFree = &unreserve;
    driver.cuMemAddressReserve = &reserve;
    driver.cuMemAlloc = &allocate;
    driver.cuMemCreate = &create;
    driver.cuMemFree = &release;
    driver.cuMemFreeHost = &release_host;
    driver.cuMemGetAllocationGranularity = &granularity;
    driver.cuMemGetInfo = &info;
    driver.cuMemHostAlloc = &allocate_host;
    driver.cuMemMap = &map;
    driver.cuMemRelease = &destroy;
    driver.cuMemSetAccess = &set_access;
    driver.cuMemUnmap = &unmap;
  }
};

void FakeDriver::add_memory_to(Driver& driver) { MemoryCalls::add_to(driver); }

}  // namespace lockstep::cuda
