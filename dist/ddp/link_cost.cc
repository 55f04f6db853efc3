#include "dist/ddp/link_cost.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <vector>

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/stream.h"

namespace lockstep::dist {

namespace {

using Clock = std::chrono::steady_clock;

double processor_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

struct Timed {
  double seconds = std::numeric_limits<double>::infinity();
  double cpu = std::numeric_limits<double>::infinity();
};

/// Times `count` concurrent reductions of `bytes` each, of slices of `sums`.
Timed time_reductions(ProcessGroup& group, const Tensor& sums, int64_t bytes, int count, int rounds,
                      const StartReduction& start) {
  const int64_t elements = bytes / static_cast<int64_t>(sizeof(float));
  Timed least;
  for (int round = 0; round < rounds; ++round) {
    group.barrier().wait();
    const Clock::time_point begin = Clock::now();
    const double cpu = processor_seconds();
    std::vector<Work> works;
    for (int i = 0; i < count; ++i) {
      works.push_back(start(sums.slice(1, i * elements, (i + 1) * elements)));
    }
    for (const Work& work : works) work.wait();
    // On a device with streams these only made the current stream wait.
    if (is_asynchronous(sums.device().type)) current_stream(sums.device()).synchronize();
    least.seconds =
        std::min(least.seconds, std::chrono::duration<double>(Clock::now() - begin).count());
    least.cpu = std::min(least.cpu, processor_seconds() - cpu);
  }
  return least;
}

/// Line through two points, with slope and intercept clamped to at least 0.
struct Line {
  double slope = 0;
  double at_zero = 0;

  Line(double x1, double y1, double x2, double y2) {
    slope = x2 > x1 ? std::max(0.0, (y2 - y1) / (x2 - x1)) : 0;
    at_zero = std::max(0.0, y1 - slope * x1);
  }
};

}  // namespace

std::string describe(const LinkCost& link) {
  /// Seconds per byte below which the measurement cannot tell a rate (1 TB/s).
  constexpr double kLeastPerByte = 1e-12;
  std::string text;
  if (link.per_byte > kLeastPerByte) {
    const double rate = 1 / link.per_byte;
    // What rounds to 1,000 of a unit is told in the next one.
    text = rate >= 999.5e6 ? fmt::format("{:.3g} GB/s", rate * 1e-9)
                           : fmt::format("{:.3g} MB/s", rate * 1e-6);
  }
  const double seconds = link.latency + link.per_operation;
  if (seconds <= 0) return text;
  if (!text.empty()) text += " and ";
  text += seconds < 999.5e-6 ? fmt::format("{:.3g} µs", seconds * 1e6)
                             : fmt::format("{:.3g} ms", seconds * 1e3);
  return text + " an operation";
}

LinkCost link_cost(const LinkTimes& times) {
  LS_ASSERT(times.small_count > 1 && times.large_count > 0);
  // Each further small reduction adds its link time; the rest of the first one's time is latency.
  const double small_turn =
      std::max(0.0, (times.small - times.one_small) / (times.small_count - 1));
  const double latency = std::max(0.0, times.one_small - small_turn);
  const double large_turn = std::max(0.0, times.large - latency) / times.large_count;
  const auto small_bytes = static_cast<double>(times.small_bytes);
  const auto large_bytes = static_cast<double>(times.large_bytes);
  const Line turn(small_bytes, small_turn, large_bytes, large_turn);
  const Line cpu(small_bytes, times.small_cpu / times.small_count, large_bytes,
                 times.large_cpu / times.large_count);
  return {.latency = latency,
          .per_operation = turn.at_zero,
          .per_byte = turn.slope,
          .cpu_per_operation = cpu.at_zero,
          .cpu_per_byte = cpu.slope};
}

LinkTimes measure_link(ProcessGroup& group, Device device, int64_t rows, int64_t most_bytes,
                       const StartReduction& start) {
  constexpr int kRounds = 3;
  constexpr int64_t kLeast = int64_t{64} << 10;
  const int64_t most = int64_t{device.type == DeviceType::kCUDA ? 16 : 1} << 20;
  LinkTimes times{.small_bytes = int64_t{16} << 10, .small_count = 16, .large_count = 4};
  // A multiple of kLeast, so that a slice is a whole number of elements.
  times.large_bytes = std::clamp(most_bytes / times.large_count / kLeast * kLeast, kLeast, most);
  const int64_t room =
      std::max(times.small_bytes * times.small_count, times.large_bytes * times.large_count);
  const Tensor sums =
      zeros({rows, room / static_cast<int64_t>(sizeof(float))}, {DType::kF32, device});
  const auto time = [&](int64_t bytes, int count, int rounds) {
    return time_reductions(group, sums, bytes, count, rounds, start);
  };
  (void)time(times.small_bytes, times.small_count, 1);  // warm-up
  times.one_small = time(times.small_bytes, 1, 2 * kRounds).seconds;
  const Timed small = time(times.small_bytes, times.small_count, kRounds);
  const Timed large = time(times.large_bytes, times.large_count, kRounds);
  times.small = small.seconds;
  times.small_cpu = small.cpu;
  times.large = large.seconds;
  times.large_cpu = large.cpu;
  return times;
}

}  // namespace lockstep::dist
