#include "launcher/bench/bench_streams.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json_line.h"
#include "core/device/device_runtime.h"
#include "core/dispatch/dispatcher.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/event.h"
#include "launcher/command_line.h"

namespace lockstep::launcher {

namespace {

struct Options {
  std::string device = "host:0";
  int rounds = 9;
  bool json = false;
};

constexpr int kCalls = 1000;

/// Median over `rounds` of the seconds that `body` takes, after one warm-up round. `settle` runs
/// unmeasured after each round.
template <class Body, class Settle>
double median_seconds(int rounds, const Body& body, const Settle& settle) {
  std::vector<double> times;
  for (int i = -1; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    settle();
    if (i >= 0) times.push_back(taken.count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

class NoKernel final : public QueuedKernel {
 public:
  NoKernel() : QueuedKernel(dispatcher().find("add.Tensor")) {}
  void run() override {}
  void each_access(FunctionRef<void(const TensorArg&, bool)>) const override {}
};

struct Figure {
  const char* name;
  double value;
  const char* unit;
  const char* meaning;
};

void measure_work(const Stream& stream, int rounds, std::vector<Figure>& figures) {
  const auto nanoseconds = [](double seconds) { return seconds / kCalls * 1e9; };
  const auto settle = [&] { stream.synchronize(); };
  if (require_runtime(stream.device).runs_cpu_kernels()) {
    const auto launch = [&] { queue_kernel(stream, std::make_unique<NoKernel>()); };
    const auto launch_all = [&] {
      for (int i = 0; i < kCalls; ++i) launch();
    };
    figures.push_back({"launch", nanoseconds(median_seconds(rounds, launch_all, settle)), "ns",
                       "to queue a kernel that does nothing"});
    const double done = median_seconds(
        rounds,
        [&] {
          launch_all();
          stream.synchronize();
        },
        [] {});
    figures.push_back({"kernel", nanoseconds(done), "ns", "to queue it and have it run"});
    const double round_trip = median_seconds(
        rounds,
        [&] {
          for (int i = 0; i < kCalls / 10; ++i) {
            launch();
            stream.synchronize();
          }
        },
        [] {});
    figures.push_back(
        {"round_trip", round_trip / (kCalls / 10) * 1e6, "us", "to queue it and wait for it"});
  }
  {
    const StreamGuard guard(stream);
    const Tensor one = ones({1}, {DType::kF32, stream.device});
    const double add = median_seconds(
        rounds,
        [&] {
          for (int i = 0; i < kCalls; ++i) one.add_(one);
        },
        settle);
    figures.push_back({"operator", nanoseconds(add), "ns", "to call add_ on one element"});
  }
  Event event;
  const double record = median_seconds(
      rounds,
      [&] {
        for (int i = 0; i < kCalls; ++i) event.record(stream);
      },
      settle);
  figures.push_back({"event_record", nanoseconds(record), "ns", "to record an event"});
  const Stream other = get_stream_from_pool(stream.device);
  const double wait = median_seconds(
      rounds,
      [&] {
        for (int i = 0; i < kCalls; ++i) other.wait_stream(stream);
      },
      settle);
  figures.push_back(
      {"wait_stream", nanoseconds(wait), "ns", "to make an idle stream wait for another"});
}

/// Buffers for copies: `bytes` of device memory and as many of pinned host memory.
class CopyBuffers {
 public:
  CopyBuffers(DeviceMemory& memory, size_t bytes)
      : memory_(memory),
        bytes_(bytes),
        device_(memory.allocate(bytes)),
        pinned_(memory.allocate_pinned(bytes)) {
    if (device_ == nullptr || pinned_ == nullptr) {
      throw OutOfMemoryError(fmt::format("[bench] the device refuses {} bytes.", bytes));
    }
  }
  ~CopyBuffers() {
    memory_.release(device_, bytes_);
    memory_.release_pinned(pinned_, bytes_);
  }
  CopyBuffers(const CopyBuffers&) = delete;
  CopyBuffers& operator=(const CopyBuffers&) = delete;

  void* device() const { return device_; }
  void* pinned() const { return pinned_; }

 private:
  DeviceMemory& memory_;
  size_t bytes_;
  void* device_;
  void* pinned_;
};

void measure_copies(const Stream& stream, int rounds, std::vector<Figure>& figures) {
  constexpr size_t kLarge = size_t{64} << 20;
  const CopyBuffers buffers(require_runtime(stream.device).memory(stream.device.index), kLarge);
  const auto seconds = [&](size_t bytes, Transfer direction) {
    const bool to_cpu = direction == Transfer::kToCpu;
    return median_seconds(
        rounds,
        [&] {
          copy_async(stream, to_cpu ? buffers.pinned() : buffers.device(),
                     to_cpu ? buffers.device() : buffers.pinned(), bytes, direction);
          stream.synchronize();
        },
        [] {});
  };
  figures.push_back({"copy_latency", seconds(8, Transfer::kFromCpu) * 1e6, "us",
                     "to copy 8 pinned bytes to the device and wait"});
  figures.push_back({"copy_to_device", kLarge / seconds(kLarge, Transfer::kFromCpu) / 1e9, "GB/s",
                     "64 MiB from pinned memory"});
  figures.push_back({"copy_to_cpu", kLarge / seconds(kLarge, Transfer::kToCpu) / 1e9, "GB/s",
                     "64 MiB to pinned memory"});
}

void run_streams(const Options& options) {
  const Device device = parse_device(options.device);
  const Stream stream = get_stream_from_pool(device);
  (void)require_runtime(device);
  std::vector<Figure> figures;
  measure_work(stream, options.rounds, figures);
  measure_copies(stream, options.rounds, figures);
  if (options.json) {
    JsonLine line;
    line.add("device", to_string(device));
    for (const Figure& figure : figures) {
      const std::string unit = figure.unit;
      line.add(fmt::format("{}_{}", figure.name, unit == "GB/s" ? "gb_per_s" : unit), figure.value);
    }
    fmt::print("{}\n", line.text());
    return;
  }
  for (const Figure& figure : figures) {
    fmt::print("{:<16} {:>10.1f} {:<5} {}\n", figure.name, figure.value, figure.unit,
               figure.meaning);
  }
}

}  // namespace

void add_bench_streams(const Verb& bench) {
  auto options = std::make_shared<Options>();
  const Verb verb =
      bench.verb("streams", "Time launches, events and copies on a device with streams");
  verb.option("--device", options->device, "Device (default host:0)");
  verb.option("--rounds", options->rounds, "Rounds, of which the median counts (default 9)")
      .positive();
  verb.flag("--json", options->json, "One JSON object instead of lines of text");
  verb.runs([options] { run_streams(*options); });
}

}  // namespace lockstep::launcher
