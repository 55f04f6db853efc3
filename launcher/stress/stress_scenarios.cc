#include "launcher/stress/stress_scenarios.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <random>

#include "core/base/check.h"
#include "core/device/waits.h"
#include "core/memory/caching_allocator.h"
#include "core/tensor/event.h"
#include "launcher/stress/budgeted_memory.h"
#include "launcher/stress/stress_work.h"

namespace lockstep {

namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

double mib(size_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); }

/// An allocator over a small budget, and blocks with known contents.
class Bench {
 public:
  struct Held {
    Block block;
    size_t bytes = 0;
    Stream home;
    StressPattern pattern;
  };

  Bench(Device device, DeviceMemory& memory, size_t budget, const AllocatorOptions& options)
      : device_(device),
        memory_(memory, budget),
        allocator_(device, memory_, options),
        work_(device, findings_) {}
  /// Waits, also after an exception: queued work uses the members that are destroyed now.
  ~Bench() {
    try {
      synchronize(device_);
    } catch (const Error&) {
      // Ignored: the exception that ended the scenario is its finding.
    }
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  /// Limits filling and verification to the first `bytes` bytes of each block.
  void touch_at_most(size_t bytes) { touched_ = bytes; }

  CachingAllocator& allocator() { return allocator_; }
  StressWork& work() { return work_; }
  ScenarioReport& report() { return report_; }

  /// Allocates a block and queues filling it on its stream.
  Held get(size_t bytes, const Stream& stream, int delay_us = 0) {
    ++report_.operations;
    Held held{allocator_.allocate(bytes, stream), bytes, stream,
              StressPattern::of(static_cast<uint64_t>(report_.operations))};
    peak_live_ = std::max(peak_live_, allocated());
    work_.fill(stream, held.block.data, std::min(bytes, touched_), held.pattern, delay_us);
    return held;
  }
  /// Queues verification of the contents on the block's stream and frees the block.
  void put(const Held& held) {
    ++report_.operations;
    work_.verify(held.home, held.block.data, std::min(held.bytes, touched_), held.pattern,
                 fmt::format("block of {} bytes", held.bytes));
    allocator_.free(held.block);
  }
  void put_all(std::vector<Held>& held) {
    for (const Held& each : held) put(each);
    held.clear();
  }

  /// Adds a finding unless `kept`.
  template <class... A>
  void expect(bool kept, fmt::format_string<A...> finding, A&&... arguments) {
    if (!kept) report_.findings.push_back(fmt::format(finding, std::forward<A>(arguments)...));
  }

  size_t allocated() const { return static_cast<size_t>(allocator_.stats().allocated); }
  size_t reserved() const { return static_cast<size_t>(allocator_.stats().reserved); }
  /// Peak of `allocated`, measured at allocations.
  size_t peak_live() const { return peak_live_; }
  size_t peak_reserved() const {
    return static_cast<size_t>(allocator_.memory_stats().reserved_bytes.all.peak);
  }

  /// Waits for all work, adds the findings of verification, and returns the report.
  ScenarioReport finish() {
    synchronize(device_);
    expect(allocated() == 0, "{} bytes are on loan in the end", allocated());
    for (const std::string& finding : findings_.first()) report_.findings.push_back(finding);
    return report_;
  }

 private:
  Device device_;
  StressFindings findings_;
  BudgetedMemory memory_;
  CachingAllocator allocator_;
  StressWork work_;
  ScenarioReport report_;
  size_t peak_live_ = 0;
  size_t touched_ = 512 * kKiB;
};

std::vector<Stream> some_streams(Device device, int count) {
  std::vector<Stream> streams;
  for (int i = 0; i < count; ++i) {
    streams.push_back(device.type == DeviceType::kCPU ? default_stream(device)
                                                      : get_stream_from_pool(device));
  }
  return streams;
}

ScenarioReport fragmented_small(Device device, DeviceMemory& memory,
                                const AllocatorOptions& options, uint64_t seed) {
  constexpr size_t kBudget = 128 * kMiB;
  Bench bench(device, memory, kBudget, options);
  const Stream stream = default_stream(device);
  std::mt19937_64 random(seed);
  // 60 MiB of small blocks of which one in eight stays, and 60 MiB of 3 MiB blocks of which every
  // other one stays: no hole has more than 3.5 MiB.
  std::vector<Bench::Held> kept, dropped;
  for (int i = 0; i < 120; ++i) {
    (i % 8 == 0 ? kept : dropped).push_back(bench.get(512 * kKiB, stream));
  }
  for (int i = 0; i < 20; ++i) {
    (i % 2 == 0 ? kept : dropped).push_back(bench.get(3 * kMiB, stream));
  }
  std::ranges::shuffle(dropped, random);
  bench.put_all(dropped);
  const size_t unused = bench.reserved() - bench.allocated();
  constexpr size_t kWanted = 44 * kMiB;
  bench.put(bench.get(kWanted, stream));
  bench.expect(bench.peak_reserved() <= kBudget, "reserved {:.1f} MiB of {:.1f}",
               mib(bench.peak_reserved()), mib(kBudget));
  bench.put_all(kept);
  bench.report().measured =
      fmt::format("{:.0f} MiB in one piece with {:.1f} MiB in holes, budget {:.0f} MiB",
                  mib(kWanted), mib(unused), mib(kBudget));
  return bench.finish();
}

ScenarioReport reserved_above_live(Device device, DeviceMemory& memory,
                                   const AllocatorOptions& options, uint64_t) {
  constexpr size_t kBudget = 256 * kMiB;
  constexpr int kKept = 20;
  Bench bench(device, memory, kBudget, options);
  const Stream stream = default_stream(device);
  std::vector<Bench::Held> kept, dropped;
  for (int i = 0; i < kKept; ++i) {
    dropped.push_back(bench.get(9 * kMiB, stream));
    kept.push_back(bench.get(1536 * kKiB, stream));
  }
  bench.put_all(dropped);
  const size_t before = bench.reserved();
  bench.allocator().empty_cache();
  const size_t after = bench.reserved();
  // Each kept block may share the two granules at its ends with free memory.
  const size_t granule = memory.granularity();
  const size_t allowed = bench.allocated() + kKept * 2 * granule;
  bench.expect(after <= allowed, "{:.1f} MiB stay reserved for {:.1f} MiB on loan, after {:.1f}",
               mib(after), mib(bench.allocated()), mib(before));
  bench.report().measured =
      fmt::format("reserved {:.1f} MiB, with an empty cache {:.1f}, at {:.1f} MiB on loan",
                  mib(before), mib(after), mib(bench.allocated()));
  bench.put_all(kept);
  return bench.finish();
}

ScenarioReport pinned_to_stream(Device device, DeviceMemory& memory,
                                const AllocatorOptions& options, uint64_t) {
  constexpr size_t kBudget = 96 * kMiB;
  Bench bench(device, memory, kBudget, options);
  const std::vector<Stream> streams = some_streams(device, 2);
  constexpr int kRounds = 6;
  for (int round = 0; round < kRounds; ++round) {
    // Freed blocks of one stream, with work still queued on them, hold most of the budget; then
    // another stream allocates as much in one block.
    const Stream& first = streams[static_cast<size_t>(round % 2)];
    const Stream& second = streams[static_cast<size_t>(1 - round % 2)];
    std::vector<Bench::Held> blocks;
    for (int i = 0; i < 16; ++i) blocks.push_back(bench.get(5 * kMiB, first, /*delay_us=*/50));
    bench.put_all(blocks);
    bench.put(bench.get(80 * kMiB, second));
  }
  bench.report().measured =
      fmt::format("80 of {:.0f} MiB went from stream to stream {} times", mib(kBudget), kRounds);
  return bench.finish();
}

ScenarioReport oom_many_streams(Device device, DeviceMemory& memory,
                                const AllocatorOptions& options, uint64_t) {
  constexpr size_t kBudget = 64 * kMiB;
  constexpr int kStreams = 16;
  Bench bench(device, memory, kBudget, options);
  const std::vector<Stream> streams = some_streams(device, kStreams);
  // Sixteen streams take turns, each allocating about a quarter of the budget.
  for (int round = 0; round < 4; ++round) {
    for (const Stream& stream : streams) {
      std::vector<Bench::Held> blocks;
      for (const size_t bytes : {12 * kMiB, 3 * kMiB, 900 * kKiB, 700 * kKiB}) {
        blocks.push_back(bench.get(bytes, stream));
      }
      bench.put_all(blocks);
    }
  }
  bench.expect(bench.peak_reserved() <= kBudget, "reserved {:.1f} MiB of {:.1f}",
               mib(bench.peak_reserved()), mib(kBudget));
  bench.report().measured = fmt::format("{} streams, {:.1f} MiB on loan at most, budget {:.0f} MiB",
                                        kStreams, mib(bench.peak_live()), mib(kBudget));
  return bench.finish();
}

ScenarioReport huge_and_tiny(Device device, DeviceMemory& memory, const AllocatorOptions& options,
                             uint64_t) {
  constexpr size_t kBudget = 160 * kMiB;
  Bench bench(device, memory, kBudget, options);
  const Stream stream = default_stream(device);
  std::vector<Bench::Held> tiny;
  for (size_t i = 0; i < 200; ++i) {
    const Bench::Held huge = bench.get(100 * kMiB + i * 100 * kKiB, stream);
    tiny.push_back(bench.get(1 + i % 700, stream));
    bench.put(huge);
    tiny.push_back(bench.get(600 + i, stream));
  }
  const size_t allowed = bench.peak_live() + bench.peak_live() / 20 + 8 * kMiB;
  bench.expect(bench.peak_reserved() <= allowed, "reserved {:.1f} MiB for {:.1f} MiB on loan",
               mib(bench.peak_reserved()), mib(bench.peak_live()));
  bench.report().measured = fmt::format("reserved {:.1f} MiB at {:.1f} MiB on loan",
                                        mib(bench.peak_reserved()), mib(bench.peak_live()));
  bench.put_all(tiny);
  return bench.finish();
}

ScenarioReport many_sizes(Device device, DeviceMemory& memory, const AllocatorOptions& options,
                          uint64_t seed) {
  constexpr size_t kSizes = 100'000;
  constexpr size_t kLive = 8;
  Bench bench(device, memory, 256 * kMiB, options);
  bench.touch_at_most(4 * kKiB);
  const Stream stream = default_stream(device);
  std::mt19937_64 random(seed);
  std::vector<uint32_t> sizes(kSizes);
  std::iota(sizes.begin(), sizes.end(), 1u);
  std::ranges::shuffle(sizes, random);
  std::vector<Bench::Held> live;
  for (const uint32_t units : sizes) {
    // Sizes up to 1.6 MiB in steps of 16 bytes: far more than a cache keyed by size could keep.
    live.push_back(bench.get(size_t{units} * 16 + 1, stream));
    if (live.size() <= kLive) continue;
    const size_t at = static_cast<size_t>(random() % live.size());
    bench.put(live[at]);
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
  }
  const size_t allowed = bench.peak_live() + bench.peak_live() / 2 + 16 * kMiB;
  bench.expect(bench.peak_reserved() <= allowed, "reserved {:.1f} MiB for {:.1f} MiB on loan",
               mib(bench.peak_reserved()), mib(bench.peak_live()));
  bench.report().measured = fmt::format("{} sizes, reserved {:.1f} MiB at {:.1f} MiB on loan",
                                        kSizes, mib(bench.peak_reserved()), mib(bench.peak_live()));
  bench.put_all(live);
  return bench.finish();
}

/// Allocates gradients on one stream and adds them up on another, which still reads them when they
/// are freed. Returns, for each gradient, the index of the previous one at its address, or its own.
std::vector<int> reduce_on_the_side(Bench& bench, const std::vector<Stream>& streams) {
  constexpr int kGradients = 300;
  constexpr int kSums = 4;
  constexpr size_t kBytes = 768 * kKiB;
  const Stream& compute = streams[0];
  const Stream& side = streams[1];
  std::vector<Bench::Held> sums;
  for (int i = 0; i < kSums; ++i) sums.push_back(bench.get(kBytes, side));

  std::map<const void*, int> last_at;
  std::vector<int> tenants;
  for (int i = 0; i < kGradients; ++i) {
    const Bench::Held gradient = bench.get(kBytes, compute);
    const auto [place, is_new] = last_at.try_emplace(gradient.block.data, i);
    tenants.push_back(place->second);
    place->second = i;
    Event ready;
    ready.record(compute);
    side.wait_event(ready);
    Bench::Held& sum = sums[static_cast<size_t>(i % kSums)];
    bench.work().add(side, sum.block.data, gradient.block.data, kBytes);
    sum.pattern = sum.pattern + gradient.pattern;
    if (i % 2 == 0) {
      bench.allocator().record_use(gradient.block, side);
    } else {
      bench.allocator().record_stream(gradient.block, side);
    }
    bench.put(gradient);
  }
  bench.put_all(sums);
  return tenants;
}

ScenarioReport side_reductions(Device device, DeviceMemory& memory, const AllocatorOptions& options,
                               uint64_t) {
  constexpr size_t kBudget = 64 * kMiB;
  const std::vector<Stream> streams = some_streams(device, 2);
  std::vector<int> first_tenants;
  {
    Bench bench(device, memory, kBudget, options);
    first_tenants = reduce_on_the_side(bench, streams);
    synchronize(device);
  }
  Bench bench(device, memory, kBudget, options);
  const int64_t waits = hidden_waits();
  const std::vector<int> tenants = reduce_on_the_side(bench, streams);
  if (options.stream_reuse == StreamReuse::kWait) {
    bench.expect(hidden_waits() == waits, "{} hidden waits", hidden_waits() - waits);
    bench.expect(tenants == first_tenants, "blocks were not reused in the same order again");
    const size_t allowed = bench.peak_live() + bench.peak_live() / 20 + 8 * kMiB;
    bench.expect(bench.peak_reserved() <= allowed, "reserved {:.1f} MiB for {:.1f} MiB on loan",
                 mib(bench.peak_reserved()), mib(bench.peak_live()));
  }
  bench.report().measured = fmt::format("reserved {:.1f} MiB at {:.1f} MiB on loan",
                                        mib(bench.peak_reserved()), mib(bench.peak_live()));
  return bench.finish();
}

constexpr StressScenario kScenarios[] = {
    {"fragmented-small",
     "a large request is served though free memory lies in small pieces between blocks",
     /*is_of_streams=*/false, /*needs_granules=*/true, fragmented_small},
    {"reserved-above-live", "emptying the cache gives back what lies free between blocks that stay",
     /*is_of_streams=*/false, /*needs_granules=*/true, reserved_above_live},
    {"pinned-to-stream", "memory that one stream freed serves another before memory runs out",
     /*is_of_streams=*/true, /*needs_granules=*/false, pinned_to_stream},
    {"oom-many-streams", "what fits on one stream fits on sixteen in turn",
     /*is_of_streams=*/true, /*needs_granules=*/false, oom_many_streams},
    {"huge-and-tiny", "tiny blocks that stay do not split what huge ones need",
     /*is_of_streams=*/false, /*needs_granules=*/true, huge_and_tiny},
    {"many-sizes", "100,000 sizes leave no cache of each behind",
     /*is_of_streams=*/false, /*needs_granules=*/true, many_sizes},
    {"side-reductions",
     "blocks that a side stream still reads are reused in time, in one order, without waiting",
     /*is_of_streams=*/true, /*needs_granules=*/false, side_reductions},
};

}  // namespace

std::span<const StressScenario> stress_scenarios() { return kScenarios; }

const StressScenario* find_stress_scenario(std::string_view name) {
  const auto found = std::ranges::find(kScenarios, name, [](const StressScenario& scenario) {
    return std::string_view(scenario.name);
  });
  return found == std::end(kScenarios) ? nullptr : found;
}

ScenarioReport run_scenario(const StressScenario& scenario, Device device, DeviceMemory& memory,
                            const AllocatorOptions& options, uint64_t seed) {
  if (scenario.needs_granules && (!options.expandable_segments || memory.granularity() == 0)) {
    ScenarioReport report;
    report.findings.push_back("needs expandable segments");
    return report;
  }
  const auto start = std::chrono::steady_clock::now();
  ScenarioReport report;
  try {
    report = scenario.run(device, memory, options, seed);
  } catch (const Error& error) {
    report.findings.push_back(fmt::format("{}: {}", error.kind(), error.what()));
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace lockstep
