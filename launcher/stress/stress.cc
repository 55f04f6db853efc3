#include "launcher/stress/stress.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/base/check.h"
#include "core/memory/caching_allocator.h"

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<Stream> streams_of(const StressOptions& options) {
  std::vector<Stream> streams = {default_stream(options.device)};
  if (options.device.type == DeviceType::kCPU) return streams;
  for (int i = 1; i < options.streams; ++i) {
    streams.push_back(get_stream_from_pool(options.device, i % 2 == 0 ? 0 : -1));
  }
  return streams;
}

/// Empties the allocator's cache, if it has one.
void empty_cache(Allocator& allocator) {
  if (auto* caching = dynamic_cast<CachingAllocator*>(&allocator)) caching->empty_cache();
}

void operator+=(StressProgram::Counts& sum, const StressProgram::Counts& more) {
  sum.operations += more.operations;
  sum.blocks += more.blocks;
  sum.verified_bytes += more.verified_bytes;
  sum.out_of_memory += more.out_of_memory;
  sum.faults += more.faults;
}

class StressRun {
 public:
  StressRun(Allocator& allocator, const StressOptions& options)
      : allocator_(allocator),
        options_(options),
        work_(options.device, findings_),
        streams_(streams_of(options)) {}

  StressReport run() {
    empty_cache(allocator_);
    const MemoryStats before = allocator_.stats();
    const auto start = Clock::now();
    do {
      run_program(options_.seed + static_cast<uint64_t>(report_.programs));
      ++report_.programs;
      check_live(before.allocated);
      reserved_.push_back(allocator_.stats().reserved);
      if (findings_.count() > 0) {
        report_.failing_seed = options_.seed + static_cast<uint64_t>(report_.programs) - 1;
      }
    } while (findings_.count() == 0 && report_.programs != options_.programs &&
             (options_.programs > 0 || seconds_since(start) < options_.seconds));
    report_.seconds = seconds_since(start);
    check_verified();
    check_reserved(before.reserved);
    report_.findings = findings_.count();
    report_.first_findings = findings_.first();
    return report_;
  }

 private:
  void run_program(uint64_t seed) {
    StressMail mail;
    std::vector<StressProgram::Counts> counts(static_cast<size_t>(options_.threads));
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < options_.threads; ++i) {
        threads.emplace_back(
            [&, i] { counts[static_cast<size_t>(i)] = run_thread(seed, i, mail); });
      }
    }
    for (const StressProgram::Counts& each : counts) report_.counts += each;
    try {
      synchronize(options_.device);
    } catch (const std::exception& error) {
      findings_.add(fmt::format("seed {}: {}", seed, error.what()));
    }
  }

  StressProgram::Counts run_thread(uint64_t seed, int thread, StressMail& mail) {
    const auto threads = static_cast<size_t>(options_.threads);
    StressProgram program(allocator_, streams_, work_, mail,
                          {.kind = options_.kind,
                           .fault = options_.fault,
                           .seed = seed,
                           .thread = thread,
                           .live_bytes = options_.live_bytes / threads,
                           .largest_block = options_.largest_block});
    try {
      program.run(options_.operations);
      program.finish();
    } catch (const std::exception& error) {
      findings_.add(fmt::format("seed {}, thread {}: {}", seed, thread, error.what()));
    }
    return program.counts();
  }

  void check_live(int64_t before) {
    const MemoryStats stats = allocator_.stats();
    report_.peak_allocated_bytes = std::max(report_.peak_allocated_bytes, stats.peak_allocated);
    report_.live_bytes = stats.allocated - before;
    if (report_.live_bytes != 0) {
      findings_.add(
          fmt::format("{} bytes are on loan after all blocks were freed", report_.live_bytes));
    }
  }

  void check_verified() {
    if (report_.counts.verified_bytes > 0) return;
    findings_.add(fmt::format(
        "nothing was verified: {} operations allocated no block, {} times without memory",
        report_.counts.operations, report_.counts.out_of_memory));
  }

  void check_reserved(int64_t before) {
    report_.reserved_bytes = reserved_.back();
    // Programs of one kind need about the same memory, so later ones must not reserve much more.
    constexpr int64_t kSlack = int64_t{64} << 20;
    constexpr size_t kEnough = 16;
    if (reserved_.size() >= kEnough) {
      const auto quarter = static_cast<std::ptrdiff_t>(reserved_.size() / 4);
      const int64_t early =
          *std::max_element(reserved_.begin() + quarter, reserved_.begin() + 2 * quarter);
      const int64_t late = *std::max_element(reserved_.end() - quarter, reserved_.end());
      if (late > early + early / 4 + kSlack) {
        findings_.add(fmt::format("reserved bytes grow from {} to {}", early, late));
      }
    }
    empty_cache(allocator_);
    report_.kept_bytes = allocator_.stats().reserved - before;
    const bool has_cache = dynamic_cast<CachingAllocator*>(&allocator_) != nullptr;
    if (has_cache && report_.kept_bytes > 0) {
      findings_.add(
          fmt::format("{} bytes stay reserved though the cache is empty", report_.kept_bytes));
    }
  }

  Allocator& allocator_;
  const StressOptions& options_;
  StressFindings findings_;
  StressWork work_;
  std::vector<Stream> streams_;
  std::vector<int64_t> reserved_;  // reserved bytes after each program
  StressReport report_;
};

}  // namespace

StressReport run_stress(Allocator& allocator, const StressOptions& options) {
  LS_CHECK(options.threads >= 1 && options.streams >= 1 && options.streams <= kMostStressStreams,
           ConfigError, "[stress] expected at least 1 thread and 1 to {} streams, got {} and {}.",
           kMostStressStreams, options.threads, options.streams);
  LS_CHECK(options.device.type != DeviceType::kCPU || options.fault == StressFault::kNone ||
               options.fault == StressFault::kFlippedByte,
           ConfigError,
           "[stress] the cpu does its work at once: expected the fault flipped-byte there, or a "
           "device with streams, as host:0.");
  return StressRun(allocator, options).run();
}

}  // namespace lockstep
