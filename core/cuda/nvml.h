#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cuda/opened_library.h"

/// The part of NVML's ABI that is called here. It is declared because toolkits come without NVML's
/// header as often as with it. Values and layouts are those of nvml.h.
namespace lockstep::cuda::nvml {

struct Device;  ///< what an nvmlDevice_t points to

enum class Result : int {
  kSuccess = 0,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kVersionMismatch = 18,
};

enum class Clock : int { kSm = 1, kMemory = 2 };
enum class Sensor : int { kGpu = 0 };
enum class Threshold : int { kSlowdown = 1 };
enum class MemoryError : int { kCorrected = 0, kUncorrected = 1 };
/// Errors since the driver was loaded, and in the GPU's life.
enum class Counter : int { kVolatile = 0, kAggregate = 1 };

/// nvmlMemory_v2_t
struct Memory {
  unsigned int version = sizeof(Memory) | 2U << 24;
  unsigned long long total = 0;
  unsigned long long reserved = 0;  ///< by driver and firmware
  unsigned long long free = 0;
  unsigned long long used = 0;
};

/// nvmlProcessInfo_v2_t
struct Process {
  unsigned int pid = 0;
  unsigned long long used = 0;  ///< bytes; kNotAvailable where the system does not tell
  unsigned int gpu_instance = 0;
  unsigned int compute_instance = 0;
};
inline constexpr unsigned long long kNotAvailable = ~0ULL;
inline constexpr unsigned int kMostLinks = 36;  ///< NVLinks of a GPU

// Name, result and arguments of each function.
#define LS_NVML_FUNCTIONS(X)                                              \
  X(nvmlInit_v2, Result, ())                                              \
  X(nvmlErrorString, const char*, (Result))                               \
  X(nvmlSystemGetDriverVersion, Result, (char* text, unsigned int bytes)) \
  X(nvmlDeviceGetHandleByUUID, Result, (const char* uuid, Device**))      \
  X(nvmlDeviceGetHandleByPciBusId_v2, Result, (const char* bus, Device**))

// Functions whose answers are left out if the library lacks them.
#define LS_NVML_OPTIONAL_FUNCTIONS(X)                                                          \
  X(nvmlDeviceIsMigDeviceHandle, Result, (Device*, unsigned int*))                             \
  X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, Result, (Device*, Device**))                 \
  X(nvmlDeviceGetClockInfo, Result, (Device*, Clock, unsigned int* mhz))                       \
  X(nvmlDeviceGetMaxClockInfo, Result, (Device*, Clock, unsigned int* mhz))                    \
  X(nvmlDeviceGetCurrentClocksEventReasons, Result, (Device*, unsigned long long*))            \
  X(nvmlDeviceGetEccMode, Result, (Device*, int* current, int* pending))                       \
  X(nvmlDeviceGetTotalEccErrors, Result, (Device*, MemoryError, Counter, unsigned long long*)) \
  X(nvmlDeviceGetRetiredPagesPendingStatus, Result, (Device*, int* pending))                   \
  X(nvmlDeviceGetRemappedRows, Result,                                                         \
    (Device*, unsigned int* corrected, unsigned int* uncorrected, unsigned int* pending,       \
     unsigned int* failed))                                                                    \
  X(nvmlDeviceGetTemperature, Result, (Device*, Sensor, unsigned int* celsius))                \
  X(nvmlDeviceGetTemperatureThreshold, Result, (Device*, Threshold, unsigned int* celsius))    \
  X(nvmlDeviceGetPowerUsage, Result, (Device*, unsigned int* milliwatts))                      \
  X(nvmlDeviceGetPowerManagementLimit, Result, (Device*, unsigned int* milliwatts))            \
  X(nvmlDeviceGetPowerManagementDefaultLimit, Result, (Device*, unsigned int* milliwatts))     \
  X(nvmlDeviceGetMemoryInfo_v2, Result, (Device*, Memory*))                                    \
  X(nvmlDeviceGetComputeRunningProcesses_v3, Result, (Device*, unsigned int* count, Process*)) \
  X(nvmlDeviceGetCurrPcieLinkGeneration, Result, (Device*, unsigned int*))                     \
  X(nvmlDeviceGetCurrPcieLinkWidth, Result, (Device*, unsigned int*))                          \
  X(nvmlDeviceGetMaxPcieLinkGeneration, Result, (Device*, unsigned int*))                      \
  X(nvmlDeviceGetMaxPcieLinkWidth, Result, (Device*, unsigned int*))                           \
  X(nvmlDeviceGetNvLinkState, Result, (Device*, unsigned int link, int* active))

/// A library's functions, under NVML's own names.
struct Functions {
#define LS_NVML_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  LS_NVML_FUNCTIONS(LS_NVML_MEMBER)
  LS_NVML_OPTIONAL_FUNCTIONS(LS_NVML_MEMBER)
#undef LS_NVML_MEMBER
};

}  // namespace lockstep::cuda::nvml

namespace lockstep::cuda {

using LoadedNvml = OpenedLibrary<nvml::Functions>;
using NvmlLibrary = LazyLibrary<nvml::Functions>;

/// Opens the first usable libnvidia-ml.so.1, which comes with the driver; it stays open until the
/// process ends.
LoadedNvml load_nvml();
/// Fills the table from an opened library and initialises it; `load_nvml` calls it.
LoadedNvml read_nvml(const std::string& file, const FindFunction& find);

/// The process's NVML.
NvmlLibrary& nvml_library();

}  // namespace lockstep::cuda
