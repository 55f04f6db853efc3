#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/mutex.h"
#include "core/cuda/context.h"
#include "core/cuda/mapped_ranges.h"
#include "core/device/device_memory.h"

namespace lockstep::cuda {

/// The memory of one device. Granules are the driver's (2 MiB on every GPU so far); a device
/// without virtual memory management has none.
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
  bool map(void* address, std::span<const Granule> granules) noexcept override;
  void unmap(void* address, size_t bytes) noexcept override;

  /// Lets a device read and write what is mapped and what will be. Throws DeviceError.
  void open_to(CUdevice peer);

  void* allocate_pinned(size_t bytes) noexcept override;
  void release_pinned(void* address, size_t bytes) noexcept override;

 private:
  template <class... Parameters, class... Arguments>
  bool attempt(const char* name, CUresult (*function)(Parameters...),
               Arguments... arguments) noexcept;
  void keep(std::string_view failure) noexcept;
  /// Makes a range that is mapped throughout accessible to all users.
  bool give_access(CUdeviceptr begin, size_t bytes) noexcept;

  Context& context_;
  const Driver& driver_;
  size_t total_ = 0;
  size_t granularity_ = 0;
  CUmemAllocationProp properties_{};
  mutable Mutex mutex_;
  mutable std::string failure_ LS_GUARDED_BY(mutex_);  ///< message for `available`
  Mutex mapped_mutex_;                                 ///< held while peers get access
  MappedRanges mapped_ LS_GUARDED_BY(mapped_mutex_);
  /// The device itself first, then the peers that its memory is open to.
  std::vector<CUmemAccessDesc> users_ LS_GUARDED_BY(mapped_mutex_);
};

}  // namespace lockstep::cuda
