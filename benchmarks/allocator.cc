// Cost of an allocation served from the cache: the caching allocator and a model of PyTorch's
// (tests/core/memory/native_allocator.h), alternately. No memory is behind either: no block is
// touched, and the driver is not called after the first round.

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/memory/caching_allocator.h"
#include "core/memory/trace_replay.h"
#include "launcher/command_line.h"
#include "tests/core/memory/book_memory.h"
#include "tests/core/memory/native_allocator.h"

namespace lockstep {
namespace {

constexpr Device kDevice{DeviceType::kHost, 0};
constexpr size_t kTotal = size_t{64} << 30;

constexpr size_t kOneSize[] = {4096};
constexpr size_t kSizes[] = {512, 4096, 65536, 1u << 20, 3u << 20, 12u << 20};

using Clock = std::chrono::steady_clock;

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// Nanoseconds per allocate/free pair; each block is freed at once, and the sizes are cycled
/// through.
double time_pairs(Allocator& allocator, const Stream& stream, std::span<const size_t> sizes,
                  int pairs) {
  size_t next = 0;
  const auto start = Clock::now();
  for (int i = 0; i < pairs; ++i) {
    allocator.free(allocator.allocate(sizes[next], stream));
    if (++next == sizes.size()) next = 0;
  }
  return nanoseconds_since(start) / pairs;
}

/// Nanoseconds per free/allocate pair with 500 live blocks, of which a random one is replaced.
/// Sizes are log-uniform from 512 bytes to 4 MiB.
double time_churn(Allocator& allocator, const Stream& stream, int pairs) {
  constexpr size_t kLive = 500;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(9, 22);
  std::vector<size_t> sizes(4096);
  for (size_t& size : sizes) size = static_cast<size_t>(std::exp2(exponent(random)));
  std::vector<uint32_t> places(4096);
  for (uint32_t& place : places) place = static_cast<uint32_t>(random() % kLive);
  std::vector<Block> live;
  for (size_t i = 0; i < kLive; ++i) live.push_back(allocator.allocate(sizes[i], stream));

  const auto start = Clock::now();
  for (int i = 0; i < pairs; ++i) {
    const size_t drawn = static_cast<size_t>(i) % sizes.size();
    Block& block = live[places[drawn]];
    allocator.free(block);
    block = allocator.allocate(sizes[drawn], stream);
  }
  const double spent = nanoseconds_since(start) / pairs;
  for (const Block& block : live) allocator.free(block);
  return spent;
}

/// Nanoseconds per pair of one size with several threads at once, each on its own stream: the mean
/// over the threads.
double time_threads(Allocator& allocator, int threads, int pairs) {
  std::barrier start(threads);
  std::vector<double> spent(static_cast<size_t>(threads));
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        const Stream stream{kDevice, i + 1};
        time_pairs(allocator, stream, kOneSize, 100);
        start.arrive_and_wait();
        spent[static_cast<size_t>(i)] = time_pairs(allocator, stream, kOneSize, pairs);
      });
    }
  }
  double sum = 0;
  for (const double each : spent) sum += each;
  return sum / threads;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Times the same work with both allocators alternately.
class Comparison {
 public:
  explicit Comparison(int rounds) : rounds_(rounds) {}

  void measure(const std::string& name, const std::function<double(Allocator&)>& time) {
    std::vector<double> ours, theirs, ratios;
    time(ours_);
    time(theirs_);
    for (int i = 0; i < rounds_; ++i) {
      ours.push_back(time(ours_));
      theirs.push_back(time(theirs_));
      ratios.push_back(theirs.back() / ours.back());
    }
    report_[name + "_ns"] = median(ours);
    report_[name + "_native_ns"] = median(theirs);
    report_[name + "_ratio"] = median(ratios);
    lines_ += fmt::format("{:<10} {:10.1f} {:10.1f} {:8.2f}\n", name, median(ours), median(theirs),
                          median(ratios));
  }
  const nlohmann::ordered_json& report() const { return report_; }
  std::string table() const {
    return fmt::format("{:<10} {:>10} {:>10} {:>8}\n", "ns", "lockstep", "native", "ratio") +
           lines_;
  }

 private:
  int rounds_;
  BookMemory our_memory_{kTotal};
  BookMemory their_memory_{kTotal};
  CachingAllocator ours_{kDevice, our_memory_};
  NativeAllocator theirs_{their_memory_};
  nlohmann::ordered_json report_ = nlohmann::ordered_json::object();
  std::string lines_;
};

int run(int argc, char** argv) {
  launcher::CommandLine line(
      "Times requests that the cache serves, beside a model of PyTorch's allocator.");
  int rounds = 9;
  int threads = 8;
  int pairs = 200'000;
  std::string trace_file;
  bool json = false;
  line.option("--rounds", rounds, "Rounds, of which the median counts").between(1, 1000);
  line.option("--threads", threads, "Threads of the second part, each on its own stream")
      .between(1, kPoolStreams);
  line.option("--pairs", pairs, "Pairs of a round").between(100, 100'000'000);
  line.option("--trace", trace_file, "Also replay this trace (../shared/traces)");
  line.flag("--json", json, "Print an object instead of a table");
  if (const auto status = line.parse(argc, argv)) return *status;

  const Stream stream{kDevice, 1};
  Comparison comparison(rounds);
  comparison.measure("pair", [&](Allocator& a) { return time_pairs(a, stream, kOneSize, pairs); });
  comparison.measure("sizes", [&](Allocator& a) { return time_pairs(a, stream, kSizes, pairs); });
  comparison.measure("churn", [&](Allocator& a) { return time_churn(a, stream, pairs); });
  comparison.measure("threads", [&](Allocator& a) { return time_threads(a, threads, pairs); });
  if (!trace_file.empty()) {
    const AllocationTrace trace = read_allocation_trace(trace_file);
    comparison.measure("trace", [&](Allocator& a) { return time_replay(trace, a, stream); });
  }
  if (json) {
    fmt::print("{}\n", comparison.report().dump());
  } else {
    fmt::print("{}", comparison.table());
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run(argc, argv); }
