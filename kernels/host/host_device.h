#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

/// The `host` devices run the cpu's kernels on asynchronous streams, each device with a memory
/// budget of its own. They reproduce a GPU's programming model, and its failures, without a GPU.
/// See docs/streams.md.
struct HostOptions {
  int devices = 4;                   ///< number of devices, from host:0; at most kMaxDevices
  size_t memory_budget = 0;          ///< bytes of each device; 0: half of the machine's memory
  size_t granule = size_t{2} << 20;  ///< bytes, a power of two and whole pages; 0: no granules
  int kernel_threads = 1;            ///< threads that each kernel may use
  /// Limit of kernels of one device that run at the same time; 0: one for each stream. With a
  /// limit, the kernel on the stream of the highest priority runs first.
  int concurrent_kernels = 0;
  /// Simulated transfer time: a copy between the cpu and a device takes at least latency + bytes /
  /// bandwidth, independently of copies on other streams.
  double copy_latency_us = 0;
  double copy_bandwidth = 0;  ///< bytes per second; 0: no limit
  /// Record the call stack of each kernel, to report it with the kernel's error. Costs some 0.1 us
  /// per frame and call.
  bool call_stacks = false;

  friend bool operator==(const HostOptions&, const HostOptions&) = default;
};

/// Parses "key:value,key:value" over `defaults`. Keys: devices, memory_mb, granule_kb,
/// kernel_threads, concurrent_kernels, copy_latency_us, copy_gb_per_s (10^9 bytes), call_stacks (0
/// or 1). Throws ConfigError naming the key and the allowed values; `source` names the origin of
/// the text.
HostOptions parse_host_options(std::string_view text, std::string_view source,
                               const HostOptions& defaults = {});
/// The current options; initially those of LOCKSTEP_HOST over the defaults. Throws ConfigError.
/// Thread-safe.
HostOptions host_options();
/// Sets the options for work that is queued from now on. Throws ConfigError for values out of
/// range. Throws DeviceError if a device that has been used would disappear, or if the granule
/// changes after memory has been used. Thread-safe.
void set_host_options(const HostOptions& options);

/// Operations of the host devices that can be made to fail.
enum class HostFault : uint8_t {
  kAllocate,  ///< DeviceMemory::allocate returns null
  kReserve,   ///< DeviceMemory::reserve returns null
  kCreate,    ///< making a granule: DeviceMemory::create returns false
  kMap,       ///< mapping a granule: DeviceMemory::map returns false, after mapping those before it
  kPinned,    ///< DeviceMemory::allocate_pinned returns null
  kKernel,    ///< a kernel throws DeviceError instead of running
  kCopy,      ///< a copy throws DeviceError instead of running
};
inline constexpr int kHostFaults = 7;

/// While alive, makes the `nth` operation of a kind fail, counted from 1 over all devices in the
/// order in which they are made or queued; with `all_later`, all later ones, too. At most one guard
/// for each kind at a time. Thread-safe.
class HostFaultGuard {
 public:
  HostFaultGuard(HostFault kind, int64_t nth, bool all_later = false);
  ~HostFaultGuard();
  HostFaultGuard(const HostFaultGuard&) = delete;
  HostFaultGuard& operator=(const HostFaultGuard&) = delete;

  /// Number of operations of this kind since the guard was made.
  int64_t calls() const;

 private:
  HostFault kind_;
};

}  // namespace lockstep
