#include "launcher/stress/stress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "core/device/device_runtime.h"
#include "core/device/stream_sanitizer.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/cpu_memory.h"
#include "tests/core/expect_error.h"
#include "tests/launcher/stress/findings.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

/// Forwards to another allocator; subclasses break one guarantee.
class BrokenAllocator : public Allocator {
 public:
  explicit BrokenAllocator(Allocator& inner) : inner_(inner) {}
  Block allocate(size_t bytes, const Stream& stream) override {
    return inner_.allocate(bytes, stream);
  }
  void free(const Block& block) noexcept override { inner_.free(block); }
  void record_stream(const Block& block, const Stream& stream) override {
    inner_.record_stream(block, stream);
  }
  void record_use(const Block& block, const Stream& stream) override {
    inner_.record_use(block, stream);
  }
  MemoryStats stats() const override { return inner_.stats(); }
  void reset_peak() override { inner_.reset_peak(); }

 protected:
  Allocator& inner_;
};

/// Options for a short run of a few small programs.
StressOptions few_programs(StressKind kind, Device device) {
  return {.device = device,
          .kind = kind,
          .threads = 3,
          .streams = 5,
          .programs = 3,
          .seed = 1,
          .operations = 400,
          .live_bytes = size_t{24} << 20,
          .largest_block = size_t{3} << 20};
}

class Stress : public testing::TestWithParam<std::pair<StressKind, Device>> {};

TEST_P(Stress, FindsNothingInTheDevicesOwnAllocator) {
  const auto [kind, device] = GetParam();
  const StressReport report = run_stress(allocator(device), few_programs(kind, device));
  EXPECT_TRUE(report.passed()) << lines_of(report.first_findings);
  EXPECT_EQ(report.programs, 3);
  EXPECT_EQ(report.counts.operations, 3 * 3 * 400);
  EXPECT_GT(report.counts.blocks, 100);
  EXPECT_GT(report.counts.verified_bytes, 0);
  EXPECT_EQ(report.counts.out_of_memory, 0);
  EXPECT_EQ(report.live_bytes, 0);
  EXPECT_FALSE(report.failing_seed.has_value());
}

std::string name_of(const testing::TestParamInfo<std::pair<StressKind, Device>>& info) {
  const auto [kind, device] = info.param;
  return std::string(kind == StressKind::kAllocator ? "Allocator" : "Streams") +
         (device == kCPU ? "Cpu" : "Host");
}
INSTANTIATE_TEST_SUITE_P(Devices, Stress,
                         testing::Values(std::pair{StressKind::kAllocator, kHost},
                                         std::pair{StressKind::kStreams, kHost},
                                         std::pair{StressKind::kAllocator, kCPU},
                                         std::pair{StressKind::kStreams, kCPU}),
                         name_of);

/// TEST_STRESS_SECONDS, for longer runs; 1 by default.
double stress_seconds() {
  const char* const text = std::getenv("TEST_STRESS_SECONDS");
  return text == nullptr ? 1 : std::strtod(text, nullptr);
}

TEST(StressRun, FindsNothingHoweverLongItLooks) {
  for (const StressKind kind : {StressKind::kAllocator, StressKind::kStreams}) {
    const StressReport report = run_stress(allocator(kHost), {.device = kHost,
                                                              .kind = kind,
                                                              .threads = 8,
                                                              .streams = 16,
                                                              .seconds = stress_seconds() / 2,
                                                              .seed = 1000,
                                                              .operations = 200});
    EXPECT_TRUE(report.passed()) << lines_of(report.first_findings);
    EXPECT_GT(report.counts.blocks, 0);
  }
}

TEST(StressRun, FindsNothingWithPlainSegmentsOrPolling) {
  DeviceMemory& memory = require_runtime(kHost).memory(0);
  AllocatorOptions plain;
  plain.expandable_segments = false;
  AllocatorOptions polls;
  polls.stream_reuse = StreamReuse::kPoll;
  for (const AllocatorOptions& options : {plain, polls}) {
    CachingAllocator allocator(kHost, memory, options);
    const StressReport report = run_stress(allocator, few_programs(StressKind::kAllocator, kHost));
    EXPECT_TRUE(report.passed()) << to_string(options) << "\n" << lines_of(report.first_findings);
  }
}

TEST(StressRun, NoticesEveryKindOfMistakeThatIsPutIn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the mistakes are races, which end the program here";
#endif
  for (const StressFault fault : {StressFault::kLostEvent, StressFault::kEarlyReuse,
                                  StressFault::kFlippedByte, StressFault::kLateCopy}) {
    for (const StressKind kind : {StressKind::kAllocator, StressKind::kStreams}) {
      // Blocks that stay are not reused.
      if (fault == StressFault::kEarlyReuse && kind == StressKind::kStreams) continue;
      StressOptions options = few_programs(kind, kHost);
      options.fault = fault;
      options.programs = 20;
      const StressReport report = run_stress(allocator(kHost), options);
      EXPECT_FALSE(report.passed()) << static_cast<int>(fault) << " " << static_cast<int>(kind);
      EXPECT_GT(report.counts.faults, 0);
    }
  }
  StressOptions options = few_programs(StressKind::kAllocator, kCPU);
  options.fault = StressFault::kFlippedByte;
  EXPECT_FALSE(run_stress(allocator(kCPU), options).passed());
  options.fault = StressFault::kLostEvent;
  EXPECT_THROW(run_stress(allocator(kCPU), options), ConfigError);
}

TEST(StressRun, FailsWhereThereWasNoMemoryToVerify) {
  CpuMemory memory(size_t{1} << 10);
  CachingAllocator allocator(kCPU, memory);
  StressOptions options = few_programs(StressKind::kAllocator, kCPU);
  options.programs = 1;
  const StressReport report = run_stress(allocator, options);
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.counts.verified_bytes, 0);
  EXPECT_THAT(report.first_findings.back(), HasSubstr("nothing was verified"));
}

TEST(StressRun, FindsAnAllocatorThatGivesOneBlockTwice) {
  class GivesTwice final : public BrokenAllocator {
   public:
    using BrokenAllocator::BrokenAllocator;
    Block allocate(size_t bytes, const Stream& stream) override {
      Block block = BrokenAllocator::allocate(bytes, stream);
      if (++blocks_ % 7 == 0) block.data = place_.data();
      return block;
    }

   private:
    std::vector<std::byte> place_ = std::vector<std::byte>(size_t{4} << 20);
    int blocks_ = 0;
  };
  CpuMemory memory(size_t{1} << 30);
  CachingAllocator inner(kCPU, memory);
  GivesTwice allocator(inner);
  StressOptions options = few_programs(StressKind::kAllocator, kCPU);
  options.threads = 1;
  const StressReport report = run_stress(allocator, options);
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.failing_seed, 1u);
  EXPECT_THAT(report.first_findings.front(), HasSubstr("is wrong"));
  EXPECT_THAT(report.first_findings.front(), HasSubstr("seed 1"));
}

TEST(StressRun, FindsAnAllocatorThatForgetsOtherStreams) {
  class Forgets final : public BrokenAllocator {
   public:
    using BrokenAllocator::BrokenAllocator;
    void record_stream(const Block&, const Stream&) override {}
    void record_use(const Block&, const Stream&) override {}
  };
  CachingAllocator inner(kHost, require_runtime(kHost).memory(0));
  Forgets allocator(inner);
  // The sanitizer also finds races that had no effect on this machine.
  stream_sanitizer::enable(true);
  const StressReport report = run_stress(allocator, few_programs(StressKind::kAllocator, kHost));
  stream_sanitizer::enable(false);
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.live_bytes, 0);
}

TEST(StressRun, FindsBlocksThatAreNeverGivenBack) {
  class Leaks final : public BrokenAllocator {
   public:
    using BrokenAllocator::BrokenAllocator;
    void free(const Block& block) noexcept override {
      if (++frees_ % 50 != 0) BrokenAllocator::free(block);
    }

   private:
    std::atomic<int> frees_ = 0;
  };
  CachingAllocator inner(kHost, require_runtime(kHost).memory(0));
  Leaks allocator(inner);
  const StressReport report = run_stress(allocator, few_programs(StressKind::kAllocator, kHost));
  ASSERT_FALSE(report.passed());
  EXPECT_GT(report.live_bytes, 0);
  EXPECT_THAT(lines_of(report.first_findings),
              HasSubstr("are on loan after all blocks were freed"));
  EXPECT_EQ(report.programs, 1);
}

TEST(StressRun, TheSameSeedDoesTheSame) {
  StressOptions options = few_programs(StressKind::kAllocator, kHost);
  options.threads = 1;  // the order in which threads exchange blocks varies
  CachingAllocator first(kHost, require_runtime(kHost).memory(0));
  CachingAllocator second(kHost, require_runtime(kHost).memory(0));
  const StressReport a = run_stress(first, options);
  const StressReport b = run_stress(second, options);
  EXPECT_EQ(a.counts.blocks, b.counts.blocks);
  EXPECT_EQ(a.counts.verified_bytes, b.counts.verified_bytes);
  EXPECT_EQ(first.stats().allocations, second.stats().allocations);
}

TEST(StressRun, DevicesThatAreNotThereAreErrors) {
  const Device none{DeviceType::kHost, kMaxDevices - 1};
  expect_error<DeviceError>(
      [&] { run_stress(allocator(kCPU), few_programs(StressKind::kStreams, none)); }, "host:15");
  StressOptions options = few_programs(StressKind::kStreams, kHost);
  options.streams = kMostStressStreams + 1;
  expect_error<ConfigError>([&] { run_stress(allocator(kHost), options); }, "1 to 65 streams");
}

TEST(StressPattern, FirstDifferenceIsFound) {
  const StressPattern pattern = StressPattern::of(7);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{8}, size_t{4099}, size_t{9000}}) {
    std::vector<std::byte> data(bytes);
    pattern.write(data.data(), bytes);
    EXPECT_EQ(pattern.first_difference(data.data(), bytes), bytes);
    for (const size_t at : {size_t{0}, bytes / 2, bytes - 1}) {
      if (at >= bytes) continue;
      data[at] ^= std::byte{1};
      EXPECT_EQ(pattern.first_difference(data.data(), bytes), at / 8 * 8);
      data[at] ^= std::byte{1};
    }
  }
}

}  // namespace
}  // namespace lockstep
