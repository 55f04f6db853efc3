#include "launcher/doctor/expected_rates.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/digits.h"

namespace lockstep::launcher {

namespace {

using train::Check;
using train::Health;

/// FLOP that a processor does in a clock, where a multiply-add counts as two.
struct ProcessorRates {
  int major;
  int minor;
  double f32;   ///< CUDA cores
  double tf32;  ///< tensor cores, dense
  double half;  ///< bf16 and f16, tensor cores, dense, sums in f32
};

/// From NVIDIA's white papers on V100 (2017, table 1), Turing (2018, table 1 and appendix A), A100
/// (2020, table 1), GA102 (2020, table 2), Ada (2022, appendix A), H100 (2022, table 2) and
/// Blackwell's data sheets (2025): TFLOP/s divided by processors and boost clock. They agree with
/// the table of arithmetic throughput in the CUDA C++ programming guide.
constexpr std::array<ProcessorRates, 7> kRates = {{
    {7, 0, 128, 0, 1024},      // V100: 125 TFLOP/s = 80 x 1530 MHz x 1024
    {7, 5, 128, 0, 1024},      // T4: 65 = 40 x 1590 MHz x 1024
    {8, 0, 128, 1024, 2048},   // A100: 312 = 108 x 1410 MHz x 2048
    {8, 6, 256, 512, 1024},    // A40: 150 = 84 x 1740 MHz x 1024
    {8, 9, 256, 512, 1024},    // L40S: 362 = 142 x 2520 MHz x 1024
    {9, 0, 256, 2048, 4096},   // H100 SXM: 989 = 132 x 1830 MHz x 4096
    {10, 0, 256, 4096, 8192},  // B200: 2250 = 148 x 1850 MHz x 8192
}};

/// GPUs whose tensor cores sum in f32 at half the rate of others with the same processors: those of
/// games (the white papers' "FP16 Tensor TFLOPS with FP32 accumulate"), and the L40.
bool sums_at_half_rate(const cuda::DeviceFacts& facts) {
  return facts.name.find("GeForce") != std::string::npos || facts.name == "NVIDIA L40";
}

std::string three_digits(double value) {
  if (value >= 99.95) return grouped(std::llround(value));
  return fmt::format("{:.3g}", value);
}

}  // namespace

double memory_peak(const cuda::DeviceFacts& facts) {
  return 2 * facts.memory_clock_mhz * 1e6 * facts.memory_bus_bits / 8;
}

double product_peak(const cuda::DeviceFacts& facts, ProductKind kind, double clock_mhz) {
  for (const ProcessorRates& rates : kRates) {
    if (rates.major != facts.major || rates.minor != facts.minor) continue;
    double flop = rates.f32;
    if (kind != ProductKind::kF32) {
      flop = kind == ProductKind::kTf32 ? rates.tf32 : rates.half;
      if (sums_at_half_rate(facts)) flop /= 2;
    }
    return flop * facts.processors * clock_mhz * 1e6;
  }
  return 0;
}

double pcie_peak(unsigned generation, unsigned width) {
  // Bytes a second and lane after the line's code: 2.5 and 5 GT/s of 8 bits in 10, then 128 in 130,
  // from the sixth on 242 bytes of each 256 (PCI Express base specification 6.0).
  constexpr std::array<double, 7> kLane = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
  return generation < kLane.size() ? kLane[generation] * width : 0;
}

Check rate_check(const Rate& rate) {
  constexpr double kWarnBelow = 0.7;
  constexpr double kFailBelow = 0.3;
  Check check{rate.subject, Health::kOk,
              fmt::format("{} {}", three_digits(rate.measured / rate.unit_size), rate.unit), ""};
  if (rate.expected > 0) {
    const double share = rate.measured / rate.expected;
    check.found +=
        fmt::format(", {:.0f} % of {}", 100 * share, three_digits(rate.expected / rate.unit_size));
    if (share < kWarnBelow) {
      check.health = share < kFailBelow ? Health::kFail : Health::kWarn;
      check.advice = rate.advice;
    }
  }
  if (!rate.how.empty()) check.found += fmt::format(" ({})", rate.how);
  return check;
}

bool is_emulated(const cuda::DeviceFacts& facts) { return facts.name.starts_with("Emulated GPU"); }

}  // namespace lockstep::launcher
