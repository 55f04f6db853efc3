#include "launcher/doctor/device_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/tensor/stream.h"
#include "profile/call_time.h"

namespace lockstep::launcher {

namespace {

using profile::TimedCall;
using Call = std::function<void()>;

TimedCall time_largest(Device device, double seconds, std::initializer_list<int64_t> sizes,
                       const std::function<Call(int64_t size)>& make) {
  return profile::time_largest(device, seconds, std::span(sizes.begin(), sizes.size()),
                               seconds / 10, make);
}

MeasuredRate rate_of(const TimedCall& timed, double work) {
  return {.per_second = work / timed.seconds, .size = timed.size};
}

/// Queues calls that keep the device busy for a while, and calls `body` meanwhile.
void call_while_busy(Device device, const TimedCall& timed, const std::function<void()>& body) {
  constexpr double kBusySeconds = 0.2;
  constexpr double kMostQueued = 500;  // a driver blocks at about a thousand calls
  const auto calls = static_cast<int64_t>(
      std::clamp(kBusySeconds / std::max(timed.seconds, 1e-9), 1.0, kMostQueued));
  for (int64_t i = 0; i < calls; ++i) timed.call();
  body();
  current_stream(device).synchronize();
}

constexpr int64_t kMiB = 1 << 20;

}  // namespace

MeasuredRate addition_rate(Device device, double seconds) {
  const NoGradGuard no_grad;
  const TimedCall timed =
      time_largest(device, seconds, {kMiB / 4, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB},
                   [&](int64_t bytes) -> Call {
                     const TensorOptions options{DType::kF32, device};
                     const Tensor a = ones({bytes / 4}, options);
                     const Tensor b = ones({bytes / 4}, options);
                     const Tensor sum = empty({bytes / 4}, options);
                     return [=] { add_out(sum, a, b); };
                   });
  return rate_of(timed, 3.0 * static_cast<double>(timed.size));
}

MeasuredRate product_rate(Device device, DType dtype, double seconds,
                          const std::function<void()>& while_busy) {
  const NoGradGuard no_grad;
  const TimedCall timed = time_largest(device, seconds, {64, 128, 256, 512, 1024, 2048, 4096, 8192},
                                       [&](int64_t side) -> Call {
                                         const TensorOptions options{dtype, device};
                                         const Tensor a = randn({side, side}, options);
                                         const Tensor b = randn({side, side}, options);
                                         return [=] { (void)mm(a, b); };
                                       });
  if (while_busy) call_while_busy(device, timed, while_busy);
  const auto side = static_cast<double>(timed.size);
  return rate_of(timed, 2 * side * side * side);
}

MeasuredRate copy_rate(Device device, Transfer direction, double seconds) {
  const TimedCall timed = time_largest(
      device, seconds, {kMiB, 8 * kMiB, 64 * kMiB, 256 * kMiB}, [&](int64_t bytes) -> Call {
        const auto size = static_cast<size_t>(bytes);
        const auto there = std::make_shared<DeviceBlock>(device, size);
        const auto here = std::make_shared<DeviceBlock>(device, size, /*pinned_on_cpu=*/true);
        return [=] {
          const bool leaves = direction == Transfer::kToCpu;
          copy_async(current_stream(device), leaves ? here->data() : there->data(),
                     leaves ? there->data() : here->data(), size, direction);
        };
      });
  return rate_of(timed, static_cast<double>(timed.size));
}

MeasuredRate peer_rate(Device from, Device to, double seconds) {
  const TimedCall timed = time_largest(
      from, seconds, {kMiB, 8 * kMiB, 64 * kMiB, 256 * kMiB}, [&](int64_t bytes) -> Call {
        const auto size = static_cast<size_t>(bytes);
        const auto source = std::make_shared<DeviceBlock>(from, size);
        const auto target = std::make_shared<DeviceBlock>(to, size);
        return [=] {
          copy_between_async(current_stream(from), target->data(), to, source->data(), from, size);
        };
      });
  return rate_of(timed, static_cast<double>(timed.size));
}

DeviceBlock::DeviceBlock(Device device, size_t bytes, bool pinned_on_cpu)
    : memory_(require_runtime(device).memory(device.index)),
      bytes_(bytes),
      pinned_(pinned_on_cpu),
      data_(pinned_ ? memory_.allocate_pinned(bytes) : memory_.allocate(bytes)) {
  LS_CHECK(data_ != nullptr, OutOfMemoryError, "[doctor] {} refuses {} bytes of {} memory.",
           to_string(device), bytes, pinned_ ? "pinned" : "its");
}

DeviceBlock::~DeviceBlock() {
  if (pinned_) {
    memory_.release_pinned(data_, bytes_);
  } else {
    memory_.release(data_, bytes_);
  }
}

}  // namespace lockstep::launcher
