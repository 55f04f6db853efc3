#pragma once

#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/cuda/fault.h"
#include "core/cuda/fault_kind.h"
#include "core/device/device_memory.h"
#include "core/tensor/device.h"

namespace lockstep::cuda {

/// Invalid elements that kernels of a device found in their arguments: an index or a target out of
/// range, an integer division by zero. A kernel cannot throw, so it records the fault, skips the
/// element and goes on; the next synchronisation of the device throws. The device stays usable.
/// Thread-safe.
class Faults {
 public:
  /// `memory` must outlive it.
  Faults(Device device, DeviceMemory& memory) : device_(device), memory_(memory) {}
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  /// Address at which kernels record a fault of this kind; it never changes. Throws
  /// OutOfMemoryError.
  Fault* place(const FaultKind& kind) {
    Fault* const known = places_[kind.number()].load(std::memory_order_acquire);
    return known != nullptr ? known : make_place(kind);
  }
  /// Throws Error for the first fault since the last call and clears all. Call it when the work
  /// that may have recorded one is done. Cheap if there is none.
  void check();

 private:
  Fault* make_place(const FaultKind& kind);

  const Device device_;
  DeviceMemory& memory_;
  std::array<std::atomic<Fault*>, FaultKind::kMost> places_{};  ///< by kind
  Mutex mutex_;
  Fault* faults_ LS_GUARDED_BY(mutex_) = nullptr;  ///< one of each kind, allocated on first use
  std::atomic<size_t> used_ = 0;
  std::vector<std::pair<std::string, std::string>> names_
      LS_GUARDED_BY(mutex_);  ///< op and what, of the used kinds
};

}  // namespace lockstep::cuda
