#include "core/cuda/device_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "core/cuda/device_facts.h"
#include "core/cuda/nvml.h"

namespace lockstep::cuda {

namespace {

using nvml::Result;

/// Calls a function of NVML that returns a value through its last argument; nothing if it fails or
/// if the library lacks it.
template <class Value, class... Parameters, class... Arguments>
std::optional<Value> ask(Result (*function)(Parameters...), Arguments... arguments) {
  Value value{};
  if (function == nullptr || function(arguments..., &value) != Result::kSuccess) return {};
  return value;
}

std::optional<double> watts_of(std::optional<unsigned> milliwatts) {
  if (!milliwatts) return {};
  return *milliwatts / 1e3;
}

/// Finds the device: a whole GPU, a slice, or else the GPU in that place of the bus.
Result find_device(const nvml::Functions& nvml, const DeviceFacts& facts, nvml::Device*& found) {
  for (const char* const prefix : {"GPU-", "MIG-"}) {
    const Result result = nvml.nvmlDeviceGetHandleByUUID((prefix + facts.uuid).c_str(), &found);
    // Other answers are about the GPU itself, as that it is lost.
    if (result != Result::kNotFound && result != Result::kInvalidArgument) return result;
  }
  return nvml.nvmlDeviceGetHandleByPciBusId_v2(facts.bus_id.c_str(), &found);
}

void read_clocks(const nvml::Functions& nvml, nvml::Device* gpu, DeviceState& state) {
  using nvml::Clock;
  state.clock_mhz = ask<unsigned>(nvml.nvmlDeviceGetClockInfo, gpu, Clock::kSm);
  state.clock_limits = ask<unsigned long long>(nvml.nvmlDeviceGetCurrentClocksEventReasons, gpu);
  state.memory_clock_mhz = ask<unsigned>(nvml.nvmlDeviceGetClockInfo, gpu, Clock::kMemory);
  state.most_clock_mhz = ask<unsigned>(nvml.nvmlDeviceGetMaxClockInfo, gpu, Clock::kSm);
  state.most_memory_clock_mhz = ask<unsigned>(nvml.nvmlDeviceGetMaxClockInfo, gpu, Clock::kMemory);
}

void read_errors(const nvml::Functions& nvml, nvml::Device* gpu, DeviceState& state) {
  using nvml::Counter;
  using nvml::MemoryError;
  int mode = 0;
  int pending_mode = 0;
  if (nvml.nvmlDeviceGetEccMode != nullptr &&
      nvml.nvmlDeviceGetEccMode(gpu, &mode, &pending_mode) == Result::kSuccess) {
    state.ecc = mode != 0;
  }
  const auto count = [&](MemoryError error, Counter counter) {
    return ask<unsigned long long>(nvml.nvmlDeviceGetTotalEccErrors, gpu, error, counter);
  };
  state.corrected_errors = count(MemoryError::kCorrected, Counter::kVolatile);
  state.uncorrected_errors = count(MemoryError::kUncorrected, Counter::kVolatile);
  state.uncorrected_errors_ever = count(MemoryError::kUncorrected, Counter::kAggregate);
  // GPUs retire pages up to Volta and Turing, and remap rows from Ampere on.
  state.repair_waits = ask<int>(nvml.nvmlDeviceGetRetiredPagesPendingStatus, gpu).value_or(0) != 0;
  std::array<unsigned, 4> rows{};
  if (nvml.nvmlDeviceGetRemappedRows != nullptr &&
      nvml.nvmlDeviceGetRemappedRows(gpu, &rows[0], &rows[1], &rows[2], &rows[3]) ==
          Result::kSuccess) {
    state.repair_waits = state.repair_waits || rows[2] != 0;
    state.repair_failed = rows[3] != 0;
  }
}

void read_heat_and_power(const nvml::Functions& nvml, nvml::Device* gpu, DeviceState& state) {
  state.celsius = ask<unsigned>(nvml.nvmlDeviceGetTemperature, gpu, nvml::Sensor::kGpu);
  state.slowdown_celsius =
      ask<unsigned>(nvml.nvmlDeviceGetTemperatureThreshold, gpu, nvml::Threshold::kSlowdown);
  state.watts = watts_of(ask<unsigned>(nvml.nvmlDeviceGetPowerUsage, gpu));
  state.limit_watts = watts_of(ask<unsigned>(nvml.nvmlDeviceGetPowerManagementLimit, gpu));
  state.default_limit_watts =
      watts_of(ask<unsigned>(nvml.nvmlDeviceGetPowerManagementDefaultLimit, gpu));
}

void read_processes(const nvml::Functions& nvml, nvml::Device* device, DeviceState& state) {
  nvml::Memory memory;
  if (nvml.nvmlDeviceGetMemoryInfo_v2 != nullptr &&
      nvml.nvmlDeviceGetMemoryInfo_v2(device, &memory) == Result::kSuccess) {
    state.used_bytes = memory.used;
  }
  if (nvml.nvmlDeviceGetComputeRunningProcesses_v3 == nullptr) return;
  constexpr unsigned kMost = 256;
  std::vector<nvml::Process> processes(kMost);
  unsigned count = kMost;
  if (nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data()) !=
      Result::kSuccess) {
    return;
  }
  processes.resize(std::min(count, kMost));
  for (const nvml::Process& process : processes) {
    if (process.pid == static_cast<unsigned>(getpid())) continue;
    GpuProcess& added = state.processes.emplace_back();
    added.pid = process.pid;
    if (process.used != nvml::kNotAvailable) added.bytes = process.used;
  }
}

void read_links(const nvml::Functions& nvml, nvml::Device* gpu, DeviceState& state) {
  state.pcie_generation = ask<unsigned>(nvml.nvmlDeviceGetCurrPcieLinkGeneration, gpu);
  state.pcie_width = ask<unsigned>(nvml.nvmlDeviceGetCurrPcieLinkWidth, gpu);
  state.most_pcie_generation = ask<unsigned>(nvml.nvmlDeviceGetMaxPcieLinkGeneration, gpu);
  state.most_pcie_width = ask<unsigned>(nvml.nvmlDeviceGetMaxPcieLinkWidth, gpu);
  for (unsigned link = 0; link < nvml::kMostLinks; ++link) {
    const std::optional<int> up = ask<int>(nvml.nvmlDeviceGetNvLinkState, gpu, link);
    if (!up) break;  // there is no such link
    ++(*up != 0 ? state.links_up : state.links_down);
  }
}

}  // namespace

DeviceState device_state(int device) {
  const DeviceFacts facts = device_facts(device);
  const LoadedNvml& library = nvml_library().loaded();
  DeviceState state;
  state.reason = library.reason;
  if (!state.reason.empty()) return state;
  const nvml::Functions& nvml = library.functions;
  std::array<char, 80> version{};
  if (nvml.nvmlSystemGetDriverVersion(version.data(), version.size()) == Result::kSuccess) {
    state.driver = version.data();
  }
  nvml::Device* found = nullptr;
  const Result result = find_device(nvml, facts, found);
  if (result != Result::kSuccess) {
    state.is_lost = result == Result::kGpuIsLost || result == Result::kResetRequired;
    state.reason = fmt::format("NVML does not give the GPU {} at {}: {}", facts.uuid, facts.bus_id,
                               nvml.nvmlErrorString(result));
    return state;
  }
  state.is_slice = ask<unsigned>(nvml.nvmlDeviceIsMigDeviceHandle, found).value_or(0) != 0;
  nvml::Device* gpu = found;
  if (state.is_slice) {
    gpu = ask<nvml::Device*>(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, found)
              .value_or(found);
  }
  // Clocks first: they say the most while work runs.
  read_clocks(nvml, gpu, state);
  read_heat_and_power(nvml, gpu, state);
  read_links(nvml, gpu, state);
  read_errors(nvml, gpu, state);
  read_processes(nvml, found, state);
  return state;
}

}  // namespace lockstep::cuda
