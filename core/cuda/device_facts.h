#pragma once

#include <cstdint>
#include <string>

namespace lockstep::cuda {

/// What the driver tells of a GPU, or of the slice of one (MIG) that the device is.
struct DeviceFacts {
  std::string name;    ///< "NVIDIA H200"
  std::string uuid;    ///< "8a1c1b9e-0f0e-...", without the prefix that says whether it is a slice
  std::string bus_id;  ///< "0000:1b:00.0"
  int major = 0;       ///< compute capability
  int minor = 0;
  int processors = 0;
  double clock_mhz = 0;  ///< highest clock of the processors
  double memory_clock_mhz = 0;
  int memory_bus_bits = 0;
  uint64_t memory_bytes = 0;
  bool multicast = false;  ///< switches between GPUs can add for it, as NCCL's NVLS lets them
};

/// Asks the driver, without creating a context. Throws DeviceError.
DeviceFacts device_facts(int device);

}  // namespace lockstep::cuda
