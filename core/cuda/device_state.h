#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cuda {

/// Why a GPU's clocks are below their maximum: bits of DeviceState::clock_limits, as NVML has them.
enum ClockLimit : uint64_t {
  kIdle = 0x1,
  kClocksSet = 0x2,  ///< lower clocks were set on purpose
  kPowerLimit = 0x4,
  kHardwareSlowdown = 0x8,
  kSyncBoost = 0x10,
  kSoftwareHeat = 0x20,
  kHardwareHeat = 0x40,
  kPowerBrake = 0x80,
  kDisplayClock = 0x100,
};

/// A process that uses a GPU.
struct GpuProcess {
  unsigned pid = 0;
  std::optional<uint64_t> bytes;  ///< that it holds there
};

/// What NVML tells of a GPU at the moment. What the GPU or the library does not know is left out.
struct DeviceState {
  /// Why NVML says nothing of this GPU, without a full stop; "" if it does.
  std::string reason;
  /// Whether the GPU itself is unusable, as one that has fallen off the bus.
  bool is_lost = false;
  bool is_slice = false;  ///< the device is a slice of the GPU (MIG); the rest is the whole GPU's
  std::string driver;     ///< "580.65.06"

  std::optional<unsigned> clock_mhz;  ///< of the processors
  std::optional<unsigned> most_clock_mhz;
  std::optional<unsigned> memory_clock_mhz;
  std::optional<unsigned> most_memory_clock_mhz;
  std::optional<uint64_t> clock_limits;  ///< ClockLimit bits

  std::optional<bool> ecc;                   ///< whether errors of memory are detected
  std::optional<uint64_t> corrected_errors;  ///< since the driver was loaded
  std::optional<uint64_t> uncorrected_errors;
  std::optional<uint64_t> uncorrected_errors_ever;  ///< in the GPU's life
  bool repair_waits = false;  ///< pages or rows of memory are replaced at the next reset
  bool repair_failed = false;

  std::optional<unsigned> celsius;
  std::optional<unsigned> slowdown_celsius;  ///< temperature at which it slows down
  std::optional<double> watts;
  std::optional<double> limit_watts;
  std::optional<double> default_limit_watts;

  std::optional<uint64_t> used_bytes;  ///< by all processes, without what driver and firmware keep
  std::vector<GpuProcess> processes;   ///< without this one

  std::optional<unsigned> pcie_generation;
  std::optional<unsigned> pcie_width;
  std::optional<unsigned> most_pcie_generation;
  std::optional<unsigned> most_pcie_width;
  int links_up = 0;  ///< NVLinks
  int links_down = 0;
};

/// Asks NVML, which finds the device by its UUID: CUDA_VISIBLE_DEVICES numbers devices anew and may
/// name slices of GPUs. Never throws for what NVML says; throws DeviceError where the driver fails.
DeviceState device_state(int device);

}  // namespace lockstep::cuda
