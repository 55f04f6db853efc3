#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/cuda/fault.h"
#include "core/device.h"
#include "core/device_memory.h"

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

  /// Where kernels that find `what` ("index out of range", without a full stop) note it. The same
  /// place for the same text of the same operator. Throws OutOfMemoryError.
  Fault* place(const std::string& op, const std::string& what);
  /// Throws Error for the first fault since the last time, and forgets all; call it when the work
  /// that may have noted one is done. Costs little when there is none.
  void check();

 private:
  static constexpr size_t kPlaces = 1024;

  const Device device_;
  DeviceMemory& memory_;
  std::mutex mutex_;
  Fault* faults_ = nullptr;  ///< kPlaces of them, made when first needed
  std::atomic<size_t> used_ = 0;
  std::map<std::pair<std::string, std::string>, Fault*> places_;
};

}  // namespace lockstep::cuda
