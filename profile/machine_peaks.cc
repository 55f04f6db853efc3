#include "profile/machine_peaks.h"

#include <nlohmann/json.hpp>

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

constexpr double kSeconds = 0.3;  // for each measurement

double product_flops(Device device, DType dtype, int64_t side) {
  const Tensor a = randn({side, side}, {dtype, device});
  const Tensor b = randn({side, side}, {dtype, device});
  const double flops = 2.0 * static_cast<double>(side * side) * static_cast<double>(side);
  return flops / call_seconds(device, kSeconds, [&] { (void)mm(a, b); });
}

double bandwidth(Device device) {
  // 64 MiB each: more than the caches that two cores of a server can claim for themselves.
  const Tensor a = zeros({int64_t{16} << 20}, {DType::kF32, device});
  const Tensor b = zeros({int64_t{16} << 20}, {DType::kF32, device});
  const Tensor c = zeros({int64_t{16} << 20}, {DType::kF32, device});
  const double bytes = 3.0 * static_cast<double>(a.nbytes());
  return bytes / call_seconds(device, kSeconds, [&] { add_out(c, a, b); });
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
