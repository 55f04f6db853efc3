#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

/// The `host` devices: the cpu's kernels on queues of their own, with memory of their own size. A
/// GPU's programming model, and what can go wrong in it, without a GPU. docs/streams.md tells more.
struct HostOptions {
  int devices = 4;                   ///< host:0 and so on; at most kMaxDevices
  size_t memory_budget = 0;          ///< bytes of each device; 0: half of the machine's memory
  size_t granule = size_t{2} << 20;  ///< bytes, a power of two and whole pages; 0: no granules
  int kernel_threads = 1;            ///< threads that each kernel may use
  /// Kernels of one device that run at the same time; 0: as many as it has streams. Where there is
  /// a limit, the kernel on the stream of the highest priority goes first.
  int concurrent_kernels = 0;
  /// A copy between the cpu and a device takes at least latency + bytes / bandwidth, whatever other
  /// streams copy.
  double copy_latency_us = 0;
  double copy_bandwidth = 0;  ///< bytes a second; 0: no limit
  /// Keep the call stack of each kernel, for the errors that kernels throw. It costs some 0.1 us a
  /// frame and call.
  bool call_stacks = false;

  friend bool operator==(const HostOptions&, const HostOptions&) = default;
};

/// Reads "key:value,key:value" over `defaults`. Keys: devices, memory_mb, granule_kb,
/// kernel_threads, concurrent_kernels, copy_latency_us, copy_gb_per_s (10^9 bytes), call_stacks (0
/// or 1). Throws ConfigError naming key and allowed values; `source` says where the text is from.
HostOptions parse_host_options(std::string_view text, std::string_view source,
                               const HostOptions& defaults = {});
/// In force now; at first those of LOCKSTEP_HOST over the defaults. Throws ConfigError.
/// Thread-safe.
HostOptions host_options();
/// Work that is queued from now on goes by `options`. Throws ConfigError for values out of range,
/// and DeviceError when a device that has been used would be gone, or when the granule changes
/// after memory has been used. Thread-safe.
void set_host_options(const HostOptions& options);

/// Calls of the host devices that can be made to fail.
enum class HostFault : uint8_t {
  kAllocate,  ///< DeviceMemory::allocate returns null
  kReserve,   ///< DeviceMemory::reserve returns null
  kCreate,    ///< making a granule: DeviceMemory::create returns false
  kMap,       ///< mapping a granule: DeviceMemory::map returns false, after those before it
  kPinned,    ///< DeviceMemory::allocate_pinned returns null
  kKernel,    ///< a kernel throws DeviceError instead of running
  kCopy,      ///< a copy throws DeviceError instead of running
};
inline constexpr int kHostFaults = 7;

/// While alive, the `nth` call of a kind from now on fails, counted over all devices from 1 in the
/// order in which they are made or queued; with `all_later`, those after it, too. One at a time for
/// each kind. Thread-safe.
class HostFaultGuard {
 public:
  HostFaultGuard(HostFault kind, int64_t nth, bool all_later = false);
  ~HostFaultGuard();
  HostFaultGuard(const HostFaultGuard&) = delete;
  HostFaultGuard& operator=(const HostFaultGuard&) = delete;

  /// Calls of this kind since the guard was made.
  int64_t calls() const;

 private:
  HostFault kind_;
};

}  // namespace lockstep
