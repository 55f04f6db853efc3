#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/mutex.h"
#include "core/cuda/context.h"
#include "core/cuda/mapped_ranges.h"
#include "core/device/device_memory.h"

namespace lockstep::cuda {

/// The memory of one device. A granule is the driver's (2 MiB on every GPU so far), or where memory
/// is ample a multiple of it, up to 32 MiB: the driver's calls take as long for a small one. A
/// device without virtual memory management has none.
///
/// Granules can be exported as file descriptors and used by network cards (GPUDirect RDMA) where
/// the device and the driver allow it, so that NCCL can register them.
///
/// Lack of memory is a return value. So is every other failure of the functions that cannot throw,
/// but its message is kept, and the next `available()` throws it; the caching allocator calls that
/// before it reports that memory ran out.
class Memory final : public DeviceMemory {
 public:
  /// `context` must outlive it. Throws DeviceError.
  explicit Memory(Context& context);

  size_t total() const override { return total_; }
  /// Throws DeviceError for a kept failure; see above.
  size_t available() const override;

  void* allocate(size_t bytes) noexcept override;
  void release(void* address, size_t bytes) noexcept override;

  size_t granularity() const override { return granularity_; }
  void* reserve(size_t bytes) noexcept override;
  void unreserve(void* address, size_t bytes) noexcept override;
  bool create(std::span<Granule> granules) noexcept override;
  void destroy(std::span<const Granule> granules) noexcept override;
  /// CUDA calls it virtual aliasing: what a kernel writes through one address is seen through
  /// another once it has ended.
  bool maps_twice() const override { return true; }
  bool map(void* address, std::span<const Granule> granules) noexcept override;
  void unmap(void* address, size_t bytes) noexcept override;

  /// Lets a device read and write what is mapped and what will be. Throws DeviceError.
  void open_to(CUdevice peer);

  /// Whether the next granules can be exported, and used by network cards.
  bool is_exportable() const noexcept { return kind().requestedHandleTypes != 0; }
  bool is_rdma_capable() const noexcept { return kind().allocFlags.gpuDirectRDMACapable != 0; }

  void* allocate_pinned(size_t bytes) noexcept override;
  void release_pinned(void* address, size_t bytes) noexcept override;

 private:
  const CUmemAllocationProp& kind() const noexcept { return kinds_[kind_.load()]; }
  /// Makes a granule of the best kind that the driver does not refuse.
  bool create(Granule& granule) noexcept;
  template <class... Parameters, class... Arguments>
  bool attempt(const char* name, CUresult (*function)(Parameters...),
               Arguments... arguments) noexcept;
  /// Calls a function with the device's context current; nullopt if that cannot be.
  template <class... Parameters, class... Arguments>
  std::optional<CUresult> call(CUresult (*function)(Parameters...),
                               Arguments... arguments) noexcept;
  /// Keeps the message of a failure other than want of memory.
  void note(std::optional<CUresult> result, const char* name) noexcept;
  void keep(std::string_view failure) noexcept;
  /// Makes a range that is mapped throughout accessible to all users.
  bool give_access(CUdeviceptr begin, size_t bytes) noexcept;

  Context& context_;
  const Driver& driver_;
  size_t total_ = 0;
  size_t granularity_ = 0;
  std::vector<CUmemAllocationProp> kinds_;  ///< of memory for granules, the best first
  std::atomic<size_t> kind_ = 0;            ///< index of the first that was not refused
  mutable Mutex mutex_;
  mutable std::string failure_ LS_GUARDED_BY(mutex_);  ///< message for `available`
  Mutex mapped_mutex_;                                 ///< held while peers get access
  MappedRanges mapped_ LS_GUARDED_BY(mapped_mutex_);
  /// The device itself first, then the peers that its memory is open to.
  std::vector<CUmemAccessDesc> users_ LS_GUARDED_BY(mapped_mutex_);
};

}  // namespace lockstep::cuda
