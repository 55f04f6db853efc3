#include "profile/machine_peaks.h"

#include <algorithm>
#include <cmath>
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
/// Sizes are doubled up to the one that is wanted, unless a call takes as long as this: a device
/// may be slower than was thought, such as an emulated one.
constexpr double kLongCall = 0.1;

/// Returns the work of a call in a second. `call_of(size)` returns a call.
template <class CallOf, class WorkOf>
double best_rate(Device device, int64_t smallest, int64_t largest, const CallOf& call_of,
                 const WorkOf& work_of) {
  for (int64_t size = smallest;; size *= 2) {
    const auto call = call_of(size);
    double seconds = call_seconds(device, 0, call);
    if (size < largest && seconds < kLongCall) continue;
    if (seconds < kLongCall) seconds = call_seconds(device, kSeconds, call);
    return work_of(size) / seconds;
  }
}

double product_flops(Device device, DType dtype, int64_t largest) {
  const auto product = [&](int64_t side) {
    const Tensor a = randn({side, side}, {dtype, device});
    const Tensor b = randn({side, side}, {dtype, device});
    return [a, b] { (void)mm(a, b); };
  };
  const auto flops = [](int64_t side) { return 2.0 * std::pow(static_cast<double>(side), 3); };
  return best_rate(device, std::min<int64_t>(largest, 128), largest, product, flops);
}

double bandwidth(Device device) {
  const auto addition = [&](int64_t elements) {
    const Tensor a = zeros({elements}, {DType::kF32, device});
    const Tensor b = zeros({elements}, {DType::kF32, device});
    const Tensor c = zeros({elements}, {DType::kF32, device});
    return [a, b, c] { add_out(c, a, b); };
  };
  const auto bytes = [](int64_t elements) { return 3.0 * 4.0 * static_cast<double>(elements); };
  // 64 MiB each: more than the caches that two cores of a server can claim for themselves.
  return best_rate(device, int64_t{1} << 14, int64_t{16} << 20, addition, bytes);
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
