#include "launcher/bench/machine_peaks.h"

#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "launcher/bench/call_time.h"

namespace lockstep::launcher {

namespace {

constexpr double kSeconds = 0.3;  // for each measurement

double product_flops(Device device, DType dtype, int64_t side) {
  const Tensor a = randn({side, side}, {dtype, device});
  const Tensor b = randn({side, side}, {dtype, device});
  const double flops = 2.0 * static_cast<double>(side * side) * static_cast<double>(side);
  return flops / call_seconds(device, kSeconds, [&] { mm(a, b); });
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
  // A product that keeps the processor busy for milliseconds: larger on a GPU.
  const int64_t side = device.type == DeviceType::kCUDA ? 8192 : 1024;
  MachinePeaks peaks;
  peaks.f32_flops = product_flops(device, DType::kF32, side);
  peaks.bf16_flops = product_flops(device, DType::kBF16, side);
  peaks.bytes_per_second = bandwidth(device);
  return peaks;
}

}  // namespace lockstep::launcher
