#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda/fault.h"
#include "core/cuda/fault_kind.h"
#include "core/device/device_memory.h"
#include "core/tensor/device.h"

namespace lockstep::cuda {

/// What kernels of a device found wrong in their arguments' elements: an index or a target out of
/// range, an integer divided by zero. A kernel cannot throw; it notes the fault, leaves the element
/// out, and goes on, and the next synchronisation of the device throws. The device stays usable.
/// Thread-safe.
class Faults {
 public:
  /// `memory` must outlive it.
  Faults(Device device, DeviceMemory& memory) : device_(device), memory_(memory) {}
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  /// Where kernels note it: always the same place. Throws OutOfMemoryError.
  Fault* place(const FaultKind& kind) {
    Fault* const known = places_[kind.number()].load(std::memory_order_acquire);
    return known != nullptr ? known : make_place(kind);
  }
  /// Throws Error for the first fault since the last time, and forgets all; call it when the work
  /// that may have noted one is done. Costs little when there is none.
  void check();

 private:
  Fault* make_place(const FaultKind& kind);

  const Device device_;
  DeviceMemory& memory_;
  std::array<std::atomic<Fault*>, FaultKind::kMost> places_{};  ///< by kind
  std::mutex mutex_;
  Fault* faults_ = nullptr;  ///< one of each kind, made when first needed
  std::atomic<size_t> used_ = 0;
  std::vector<std::pair<std::string, std::string>> names_;  ///< op and what, of the used ones
};

}  // namespace lockstep::cuda
