#include "profile/machine_peaks.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/regular_file.h"
#include "core/base/json_line.h"
#include "core/base/parse_json.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/tensor/random_state_guard.h"
#include "profile/call_time.h"

namespace lockstep::profile {

namespace {

constexpr double kSeconds = 0.3;   // for each measurement
constexpr double kLongCall = 0.1;  ///< the sizes of slower devices grow no further

/// Sizes from the smallest to the largest, each twice the one before.
std::vector<int64_t> doubled(int64_t smallest, int64_t largest) {
  std::vector<int64_t> sizes;
  for (int64_t size = smallest; size <= largest; size *= 2) sizes.push_back(size);
  return sizes;
}

double product_flops(Device device, DType dtype, int64_t largest) {
  const TimedCall timed =
      time_largest(device, kSeconds, doubled(128, largest), kLongCall, [&](int64_t side) {
        const Tensor a = randn({side, side}, {dtype, device});
        const Tensor b = randn({side, side}, {dtype, device});
        return [a, b] { (void)mm(a, b); };
      });
  return 2.0 * std::pow(static_cast<double>(timed.size), 3) / timed.seconds;
}

double bandwidth(Device device) {
  // 64 MiB each: more than the caches that two cores of a server can claim for themselves.
  const TimedCall timed =
      time_largest(device, kSeconds, doubled(int64_t{1} << 14, int64_t{16} << 20), kLongCall,
                   [&](int64_t elements) {
                     const Tensor a = zeros({elements}, {DType::kF32, device});
                     const Tensor b = zeros({elements}, {DType::kF32, device});
                     const Tensor c = zeros({elements}, {DType::kF32, device});
                     return [a, b, c] { add_out(c, a, b); };
                   });
  return 3.0 * 4.0 * static_cast<double>(timed.size) / timed.seconds;
}

}  // namespace

MachinePeaks measure_peaks(Device device) {
  const NoGradGuard no_grad;
  const RandomStateGuard random_state_stays;
  // A product that keeps the processor busy for milliseconds: larger on a GPU.
  const int64_t side = device.type == DeviceType::kCUDA ? 8192 : 1024;
  MachinePeaks peaks;
  peaks.f32_flops = product_flops(device, DType::kF32, side);
  peaks.bf16_flops = product_flops(device, DType::kBF16, side);
  peaks.bytes_per_second = bandwidth(device);
  return peaks;
}

void write_peaks(const std::string& path, const MachinePeaks& peaks) {
  write_text(path, JsonLine()
                           .add("f32_flops", peaks.f32_flops)
                           .add("bf16_flops", peaks.bf16_flops)
                           .add("bytes_per_second", peaks.bytes_per_second)
                           .text() +
                       "\n");
}

MachinePeaks read_peaks(const std::string& path) {
  try {
    const nlohmann::json json = parse_json(read_whole_file(path));
    return {json.at("f32_flops"), json.at("bf16_flops"), json.at("bytes_per_second")};
  } catch (const std::exception& error) {
    throw DataError("[profile] " + path + " does not hold a machine's rates: " + error.what() +
                    ". Remove it: tables then lack the share of the peak.");
  }
}

}  // namespace lockstep::profile
