// Compares the caching allocator with the model of PyTorch's, and replays traces of real runs.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/memory/caching_allocator.h"
#include "core/memory/trace_replay.h"
#include "tests/core/memory/allocator_setup.h"
#include "tests/core/memory/book_memory.h"
#include "tests/core/memory/native_allocator.h"

namespace lockstep {
namespace {

/// Sizes around the thresholds of the policy, and others above 64 KiB. Up to that size our
/// allocator picks free blocks by the time they were freed, not by best fit.
size_t size_of(uint8_t choice, uint32_t number) {
  constexpr size_t kLeast = 65 * 1024;
  switch (choice % 4) {
    case 0:
      return kLeast + number % kMiB;
    case 1:
      return kLeast + number % (12 * kMiB);
    case 2:
      return kLeast + number % (40 * kMiB);
    default: {
      constexpr size_t kEdges[] = {128 * 1024, kMiB, 2 * kMiB, 10 * kMiB, 19 * kMiB, 20 * kMiB};
      return kEdges[number % std::size(kEdges)] + number / 8 % 3 - 1;
    }
  }
}

RC_GTEST_PROP(PlainSegments, ReserveWhatPyTorchsPolicyReserves, ()) {
  BookMemory our_memory(1024 * kMiB), their_memory(1024 * kMiB);
  CachingAllocator ours(kBookDevice, our_memory, plain_segments());
  NativeAllocator theirs(their_memory);
  std::vector<std::pair<Block, Block>> live;
  const auto steps = *rc::gen::container<std::vector<std::pair<uint8_t, uint32_t>>>(
      rc::gen::pair(rc::gen::arbitrary<uint8_t>(), rc::gen::inRange(0u, 1u << 30)));
  for (const auto& [choice, number] : steps) {
    if (choice % 64 == 63) {
      ours.empty_cache();
      theirs.empty_cache();
    } else if (choice % 8 < 5 || live.empty()) {
      const size_t bytes = size_of(choice / 8, number);
      const auto get = [&](Allocator& allocator) {
        try {
          return allocator.allocate(bytes, kBookStream);
        } catch (const OutOfMemoryError&) {
          return Block{};
        }
      };
      const std::pair<Block, Block> got{get(ours), get(theirs)};
      RC_ASSERT((got.first.data == nullptr) == (got.second.data == nullptr));
      if (got.first.data != nullptr) live.push_back(got);
    } else {
      const size_t at = number % live.size();
      ours.free(live[at].first);
      theirs.free(live[at].second);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    RC_ASSERT(ours.stats().reserved == theirs.stats().reserved);
  }
  for (const auto& [our_block, their_block] : live) {
    ours.free(our_block);
    theirs.free(their_block);
  }
  RC_ASSERT(ours.stats().allocated == 0);
}

enum class Policy { kNative, kExpandable, kPlanned };

struct Replayed {
  ReplayResult result;
  int64_t peak_reserved;  ///< includes peaks within one call
};

Replayed replay_with(Policy policy, const AllocationTrace& trace) {
  BookMemory memory(4096 * kMiB);
  CachingAllocator allocator(kBookDevice, memory,
                             policy == Policy::kNative ? plain_segments() : AllocatorOptions{});
  allocator.set_planned(policy == Policy::kPlanned);
  const ReplayResult result =
      replay(trace, allocator, kBookStream, [&] { allocator.mark_step(kBookStream); });
  return {result, allocator.memory_stats().reserved_bytes.all.peak};
}

class RealTraces : public testing::TestWithParam<const char*> {
 protected:
  /// Skips the test where the traces are absent.
  void SetUp() override {
    const std::filesystem::path file = std::filesystem::path(LOCKSTEP_SOURCE_DIR) /
                                       "../shared/traces" / (std::string(GetParam()) + ".trace");
    if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
    trace_ = read_allocation_trace(file.string());
  }
  AllocationTrace trace_;
};

TEST_P(RealTraces, PlainSegmentsReserveWhatPyTorchsPolicyReserves) {
  BookMemory memory(4096 * kMiB);
  NativeAllocator native(memory);
  const ReplayResult expected = replay(trace_, native, kBookStream);
  const ReplayResult result = replay_with(Policy::kNative, trace_).result;
  EXPECT_EQ(result.peak_reserved_bytes, expected.peak_reserved_bytes);
  EXPECT_EQ(result.driver_calls, expected.driver_calls);
  EXPECT_EQ(result.driver_calls_after_first_step, expected.driver_calls_after_first_step);
}

TEST_P(RealTraces, ExpandableSegmentsReserveLittleMoreThanIsLive) {
  const Replayed replayed = replay_with(Policy::kExpandable, trace_);
  EXPECT_LE(static_cast<double>(replayed.peak_reserved),
            1.05 * static_cast<double>(replayed.result.peak_live_bytes) + 4 * kMiB);
}

TEST_P(RealTraces, PlannedStepsReserveHardlyMoreThanIsLive) {
  const Replayed replayed = replay_with(Policy::kPlanned, trace_);
  EXPECT_LE(static_cast<double>(replayed.peak_reserved),
            1.02 * static_cast<double>(replayed.result.peak_live_bytes) + 2 * kMiB);
}

/// Traces whose steps all have the same shapes.
class FixedShapeTraces : public RealTraces {};

TEST_P(FixedShapeTraces, AskTheDriverForNothingAfterTheFirstStep) {
  for (const Policy policy : {Policy::kNative, Policy::kExpandable, Policy::kPlanned}) {
    EXPECT_EQ(replay_with(policy, trace_).result.driver_calls_after_first_step, 0)
        << static_cast<int>(policy);
  }
}

// The gradients of a step are freed when the next one begins, so no plan covers them; the arena of
// the plan must not be reserved on top of them.
TEST(PlannedSteps, NeedNoMoreThanTheCacheWhereBlocksCrossTheStepsEnd) {
  AllocationTraceBuilder builder;
  constexpr uint64_t kLayers = 40;
  for (uint64_t step = 0; step < 6; ++step) {
    const uint64_t ids = step * 1000;
    builder.mark("step" + std::to_string(step));
    for (uint64_t i = 0; i < kLayers && step > 0; ++i) builder.free(ids - 1000 + 500 + i);
    for (uint64_t i = 0; i < kLayers; ++i) builder.allocate(ids + i, (2 + i % 3) * kMiB);
    for (uint64_t i = kLayers; i-- > 0;) {
      builder.allocate(ids + 500 + i, 3 * kMiB);
      builder.free(ids + i);
    }
  }
  const AllocationTrace trace = builder.take();
  const Replayed cached = replay_with(Policy::kExpandable, trace);
  const Replayed planned = replay_with(Policy::kPlanned, trace);
  EXPECT_LE(planned.peak_reserved, cached.peak_reserved + static_cast<int64_t>(4 * kMiB));
}

INSTANTIATE_TEST_SUITE_P(Shared, FixedShapeTraces, testing::Values("gpt_fixed"),
                         [](const auto& info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(Shared, RealTraces,
                         testing::Values("gpt_fixed", "gpt_varlen", "lstm_varlen"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lockstep
