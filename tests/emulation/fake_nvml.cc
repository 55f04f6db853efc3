// libnvidia-ml.so.1 of a machine with emulated GPUs: it finds them by the UUIDs that the fake
// driver tells, and answers as the environment variable FAKE_NVML says, which holds words,
// separated by commas, for what is wrong: see `is` below.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/cuda/nvml.h"

namespace lockstep::cuda::nvml {

namespace {

/// Whether FAKE_NVML has this word.
bool is(const std::string& word) {
  const char* const words = std::getenv("FAKE_NVML");
  return words != nullptr &&
         ("," + std::string(words) + ",").find("," + word + ",") != std::string::npos;
}

Device* const kGpu = reinterpret_cast<Device*>(0x1000);
Device* const kSlice = reinterpret_cast<Device*>(0x2000);

Result give(unsigned* out, unsigned value) {
  *out = value;
  return Result::kSuccess;
}

}  // namespace

extern "C" {

Result nvmlInit_v2() { return is("mismatch") ? Result::kVersionMismatch : Result::kSuccess; }

const char* nvmlErrorString(Result result) {
  switch (result) {
    case Result::kVersionMismatch:
      return "Driver/library version mismatch";
    case Result::kGpuIsLost:
      return "GPU is lost";
    case Result::kNotFound:
      return "Not Found";
    default:
      return "Unknown Error";
  }
}

Result nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  std::snprintf(text, bytes, "580.65.06");
  return Result::kSuccess;
}

Result nvmlDeviceGetHandleByUUID(const char* uuid, Device** device) {
  if (is("lost")) return Result::kGpuIsLost;
  const std::string wanted = is("slice") ? "MIG-e0000000-" : "GPU-e0000000-";
  if (!std::string(uuid).starts_with(wanted)) return Result::kNotFound;
  *device = is("slice") ? kSlice : kGpu;
  return Result::kSuccess;
}

Result nvmlDeviceGetHandleByPciBusId_v2(const char*, Device**) { return Result::kNotFound; }

Result nvmlDeviceIsMigDeviceHandle(Device* device, unsigned* is_slice) {
  return give(is_slice, device == kSlice);
}

Result nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device*, Device** gpu) {
  *gpu = kGpu;
  return Result::kSuccess;
}

Result nvmlDeviceGetClockInfo(Device* device, Clock clock, unsigned* mhz) {
  while (is("hangs")) pause();
  if (device == kSlice) return Result::kInvalidArgument;
  if (clock == Clock::kMemory) return give(mhz, 2619);
  return give(mhz, is("throttled") ? 510 : is("warm") ? 1200 : 1755);
}

Result nvmlDeviceGetMaxClockInfo(Device*, Clock clock, unsigned* mhz) {
  return give(mhz, clock == Clock::kMemory ? 2619 : 1980);
}

Result nvmlDeviceGetCurrentClocksEventReasons(Device*, unsigned long long* reasons) {
  *reasons = is("throttled") ? 0x8 | 0x40 : is("warm") ? 0x20 : 0x4;
  return Result::kSuccess;
}

Result nvmlDeviceGetEccMode(Device*, int* current, int* pending) {
  if (is("game")) return Result::kNotSupported;
  *current = *pending = is("no_ecc") ? 0 : 1;
  return Result::kSuccess;
}

Result nvmlDeviceGetTotalEccErrors(Device*, MemoryError error, Counter, unsigned long long* count) {
  if (is("game") || is("no_ecc")) return Result::kNotSupported;
  *count = error == MemoryError::kCorrected ? 3 : is("errors") ? 2 : 0;
  return Result::kSuccess;
}

Result nvmlDeviceGetRemappedRows(Device*, unsigned* corrected, unsigned* uncorrected,
                                 unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = *failed = 0;
  return give(pending, is("errors"));
}

Result nvmlDeviceGetTemperature(Device*, Sensor, unsigned* celsius) {
  return give(celsius, is("throttled") ? 92 : 41);
}

Result nvmlDeviceGetTemperatureThreshold(Device*, Threshold, unsigned* celsius) {
  return give(celsius, 87);
}

Result nvmlDeviceGetPowerUsage(Device*, unsigned* milliwatts) { return give(milliwatts, 118'000); }

Result nvmlDeviceGetPowerManagementLimit(Device*, unsigned* milliwatts) {
  return give(milliwatts, 700'000);
}

Result nvmlDeviceGetPowerManagementDefaultLimit(Device*, unsigned* milliwatts) {
  return give(milliwatts, 700'000);
}

Result nvmlDeviceGetMemoryInfo_v2(Device*, Memory* memory) {
  if (memory->version != sizeof(Memory) + (2U << 24)) return Result::kInvalidArgument;
  memory->used = is("occupied") || is("hidden") ? 30ULL << 30 : 0;
  return Result::kSuccess;
}

Result nvmlDeviceGetComputeRunningProcesses_v3(Device*, unsigned* count, Process* processes) {
  if (!is("occupied")) return give(count, 0);
  if (*count < 1) return Result::kInsufficientSize;
  processes[0] = {.pid = 4121, .used = 30ULL << 30, .gpu_instance = ~0U, .compute_instance = ~0U};
  return give(count, 1);
}

Result nvmlDeviceGetCurrPcieLinkGeneration(Device*, unsigned* out) { return give(out, 5); }
Result nvmlDeviceGetMaxPcieLinkGeneration(Device*, unsigned* out) { return give(out, 5); }
Result nvmlDeviceGetCurrPcieLinkWidth(Device*, unsigned* out) {
  return give(out, is("riser") ? 8 : 16);
}
Result nvmlDeviceGetMaxPcieLinkWidth(Device*, unsigned* out) { return give(out, 16); }

Result nvmlDeviceGetNvLinkState(Device*, unsigned link, int* active) {
  if (link >= 18) return Result::kInvalidArgument;
  *active = is("unplugged") && link >= 12 ? 0 : 1;
  return Result::kSuccess;
}

}  // extern "C"

}  // namespace lockstep::cuda::nvml
