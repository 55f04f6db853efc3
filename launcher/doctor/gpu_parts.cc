#include "launcher/doctor/gpu_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/base/environment_flag.h"
#include "core/cuda/availability.h"
#include "core/cuda/device_facts.h"
#include "core/cuda/device_state.h"
#include "core/device/arithmetic_facts.h"
#include "core/device/device_runtime.h"
#include "launcher/doctor/device_rates.h"
#include "launcher/doctor/expected_rates.h"
#include "launcher/doctor/fast_paths.h"
#include "launcher/doctor/gpu_links.h"
#include "launcher/doctor/state_checks.h"
#include "train/report/step_line.h"

namespace lockstep::launcher {

namespace {

using cuda::DeviceFacts;
using cuda::DeviceState;
using train::Check;
using train::Health;

constexpr double kSecondsARate = 0.3;

/// One GPU of the report. What its state at rest says is kept for its rates.
struct Gpu {
  Device device;
  std::string name;  ///< "cuda:0"
  DeviceFacts facts = {};
  DeviceState at_rest = {};
};

std::vector<Check> state_part(Gpu& gpu) {
  gpu.facts = cuda::device_facts(gpu.device.index);
  // Before a context is created: this process holds no memory there yet.
  gpu.at_rest = cuda::device_state(gpu.device.index);
  // Drivers may stop telling clocks, which are NVML's to tell.
  if (gpu.facts.clock_mhz == 0) gpu.facts.clock_mhz = gpu.at_rest.most_clock_mhz.value_or(0);
  if (gpu.facts.memory_clock_mhz == 0) {
    gpu.facts.memory_clock_mhz = gpu.at_rest.most_memory_clock_mhz.value_or(0);
  }
  std::string found =
      fmt::format("{}, {}, compute capability {}.{}, {} processors, PCI {}", gpu.facts.name,
                  train::format_bytes(gpu.facts.memory_bytes), gpu.facts.major, gpu.facts.minor,
                  gpu.facts.processors, gpu.facts.bus_id);
  if (!gpu.at_rest.driver.empty()) found += ", driver " + gpu.at_rest.driver;
  if (gpu.at_rest.is_slice) found += ", a slice (MIG)";
  std::vector<Check> checks = {{gpu.name, Health::kOk, found, ""}};
  for (Check& check : state_checks(gpu.name, gpu.at_rest)) checks.push_back(std::move(check));
  return checks;
}

/// "f32 additions of 256.0 MiB"
std::string how_text(const char* what, const MeasuredRate& measured) {
  return fmt::format("{} of {}", what, train::format_bytes(static_cast<uint64_t>(measured.size)));
}

std::vector<Check> memory_part(const Gpu& gpu) {
  const MeasuredRate measured = addition_rate(gpu.device, kSecondsARate);
  // Slices have a share of the memory's rate that the driver does not tell.
  const bool judged = !is_emulated(gpu.facts) && !gpu.at_rest.is_slice;
  return {
      rate_check({.subject = gpu.name + " memory",
                  .measured = measured.per_second,
                  .expected = judged ? memory_peak(gpu.facts) : 0,
                  .unit = "GB/s",
                  .unit_size = 1e9,
                  .how = how_text("f32 additions", measured),
                  .advice = "Its memory is slow: look for other processes, a memory clock below "
                            "the highest, and repairs that wait."})};
}

bool has_cublas_lt(Device device) {
  return std::ranges::any_of(arithmetic_facts(device), [](const ArithmeticFact& fact) {
    return fact.name == "cuBLASLt" && fact.value != "none";
  });
}

Check product_check(const Gpu& gpu, const char* name, const MeasuredRate& measured,
                    double expected) {
  return rate_check(
      {.subject = fmt::format("{} products {}", gpu.name, name),
       .measured = measured.per_second,
       .expected = expected,
       .unit = "TFLOP/s",
       .unit_size = 1e12,
       .how = fmt::format("side {}", measured.size),
       .advice = "Products are slow beside the processors' clock: look for other processes, and "
                 "for a newer cuBLASLt."});
}

/// The half that a GPU's tensor cores take: those before Ampere's have no bf16.
DType half_of(const Gpu& gpu) { return gpu.facts.major >= 8 ? DType::kBF16 : DType::kF16; }

/// Products, with the clocks while the second kind of them runs.
std::vector<Check> product_part(const Gpu& gpu) {
  const bool tf32 = environment_flag("LOCKSTEP_ALLOW_TF32");
  const DType half = half_of(gpu);
  const MeasuredRate single = product_rate(gpu.device, DType::kF32, kSecondsARate);
  DeviceState working;
  const MeasuredRate halves = product_rate(gpu.device, half, kSecondsARate,
                                           [&] { working = cuda::device_state(gpu.device.index); });
  // At the clock that the GPU had: how far that is below the highest is told apart.
  const double clock = working.clock_mhz ? *working.clock_mhz : gpu.facts.clock_mhz;
  // Without cuBLASLt, which has a warning of its own, products are tiles of this project.
  const bool judged = !is_emulated(gpu.facts) && has_cublas_lt(gpu.device);
  const auto expected = [&](ProductKind kind) {
    return judged ? product_peak(gpu.facts, kind, clock) : 0;
  };
  std::vector<Check> checks = {
      product_check(gpu, tf32 ? "tf32" : "f32", single,
                    expected(tf32 ? ProductKind::kTf32 : ProductKind::kF32)),
      product_check(gpu, half == DType::kBF16 ? "bf16" : "f16", halves,
                    expected(ProductKind::kHalf))};
  for (Check& check : clock_check(gpu.name, working)) checks.push_back(std::move(check));
  return checks;
}

std::vector<Check> copy_part(const Gpu& gpu) {
  const DeviceState& state = gpu.at_rest;
  double expected = 0;
  std::string link;
  if (state.most_pcie_generation && state.most_pcie_width && !is_emulated(gpu.facts)) {
    expected = pcie_peak(*state.most_pcie_generation, *state.most_pcie_width);
    link = fmt::format(", PCIe {} x{}", *state.most_pcie_generation, *state.most_pcie_width);
  }
  std::vector<Check> checks;
  for (const auto& [what, direction] :
       {std::pair("from the cpu", Transfer::kFromCpu), std::pair("to the cpu", Transfer::kToCpu)}) {
    const MeasuredRate measured = copy_rate(gpu.device, direction, kSecondsARate);
    checks.push_back(rate_check(
        {.subject = fmt::format("{} {}", gpu.name, what),
         .measured = measured.per_second,
         .expected = expected,
         .unit = "GB/s",
         .unit_size = 1e9,
         .how = how_text("pinned copies", measured) + link,
         .advice = "The bus is slow: compare lspci -vv's LnkSta with LnkCap, and pin the process "
                   "to the cores beside the GPU (numactl)."}));
  }
  const unsigned width = state.pcie_width.value_or(0);
  const unsigned most = state.most_pcie_width.value_or(0);
  if (width > 0 && width < most) {
    checks.push_back({gpu.name + " PCIe", Health::kWarn, fmt::format("{} of {} lanes", width, most),
                      "It has fewer lanes than it can use: look at its slot and riser."});
  }
  return checks;
}

}  // namespace

std::vector<Part> gpu_parts() {
  std::vector<std::shared_ptr<Gpu>> gpus;
  std::vector<Device> devices;
  for (int i = 0; i < device_count(DeviceType::kCUDA); ++i) {
    const Device device{DeviceType::kCUDA, static_cast<int8_t>(i)};
    devices.push_back(device);
    gpus.push_back(std::make_shared<Gpu>(Gpu{.device = device, .name = to_string(device)}));
  }
  std::vector<Part> parts;
  for (const auto& gpu : gpus) {
    parts.push_back({gpu->name, [gpu] { return state_part(*gpu); }});
  }
  for (const auto& gpu : gpus) {
    parts.push_back({gpu->name + " memory", [gpu] { return memory_part(*gpu); }});
    parts.push_back({gpu->name + " products", [gpu] { return product_part(*gpu); }});
    parts.push_back({gpu->name + " fast ways",
                     [gpu] { return fast_path_checks(gpu->name, gpu->device, half_of(*gpu)); }});
    parts.push_back({gpu->name + " copies", [gpu] { return copy_part(*gpu); }});
  }
  if (devices.size() > 1) {
    const auto copies = std::make_shared<PeerCopies>();
    for (const Device from : devices) {
      parts.push_back(
          {to_string(from) + " peers", [=] { return peer_checks(from, devices, *copies); }});
    }
    parts.push_back({"NCCL", [=] { return nccl_checks(devices, *copies); }});
  }
  return parts;
}

}  // namespace lockstep::launcher
