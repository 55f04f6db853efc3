// Steps that a CachingAllocator serves from a plan.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/memory/caching_allocator.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/allocator_setup.h"
#include "tests/core/memory/fake_memory.h"

namespace lockstep {
namespace {

struct AllocatorPlan : ::testing::Test {
  AllocatorPlan() { allocator.set_planned(true); }
  ~AllocatorPlan() override { EXPECT_EQ(memory.wrong_calls, 0) << memory.wrong_call; }

  /// One step: activations with temporaries between them, all scaled by `scale`; then frees the
  /// activations in reverse order and checks their contents.
  void step(size_t scale = 1) {
    allocator.mark_step(kStream);
    std::vector<Block> kept;
    for (size_t i = 0; i < 8; ++i) {
      const Block temporary = allocator.allocate(scale * (3 * kMiB + i * 1000), kStream);
      kept.push_back(allocator.allocate(scale * (kMiB + i * 300'000), kStream));
      std::memset(temporary.data, 255, temporary.bytes);
      std::memset(kept.back().data, static_cast<int>(i), kept.back().bytes);
      allocator.free(temporary);
    }
    for (size_t i = 8; i-- > 0;) {
      const auto* const data = static_cast<const unsigned char*>(kept[i].data);
      EXPECT_EQ(data[0], i);
      EXPECT_EQ(data[kept[i].bytes - 1], i);
      allocator.free(kept[i]);
    }
  }

  FakeMemory memory{256 * kMiB};
  CachingAllocator allocator{kCPU, memory};
};

TEST_F(AllocatorPlan, ARepeatedStepIsServedFromThePlanWithoutTheDriver) {
  step();
  step();
  const DeviceMemoryStats stats = allocator.memory_stats();
  EXPECT_GT(stats.planned_lower_bound, static_cast<int64_t>(16 * kMiB));
  EXPECT_GE(stats.planned_peak_bytes, stats.planned_lower_bound);
  const MemoryStats before = allocator.stats();
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(allocator.stats().system_calls, before.system_calls);
  EXPECT_EQ(allocator.stats().reserved, before.reserved);
  EXPECT_EQ(allocator.stats().allocated, 0);
  EXPECT_EQ(allocator.wrong_frees(), 0);
}

TEST_F(AllocatorPlan, AStepBeginsWithAnArenaOfThePlansSize) {
  allocator.free(allocator.allocate(128 * kMiB, kStream));  // more than the plan needs
  step();
  step();
  allocator.mark_step(kStream);
  const auto planned = static_cast<size_t>(allocator.memory_stats().planned_peak_bytes);
  ASSERT_GT(planned, 16 * kMiB);
  const MemorySnapshot snapshot = allocator.snapshot();
  ASSERT_EQ(snapshot.segments.size(), 1u);
  EXPECT_EQ(snapshot.segments[0].blocks.size(), 2u) << "the arena, and what is beside it";
  EXPECT_TRUE(std::ranges::any_of(snapshot.segments[0].blocks,
                                  [&](const BlockInfo& block) { return block.size == planned; }));
}

TEST_F(AllocatorPlan, ThereIsNoArenaBesideBlocksThatGoEarlyInTheStep) {
  allocator.set_options(plain_segments());
  // Two segments: one holds the block, the other would hold the arena, though no step so far has
  // needed both at once.
  for (const size_t bytes : {40 * kMiB, 42 * kMiB}) {
    allocator.free(allocator.allocate(bytes, kStream));
  }
  step();
  step();
  const auto planned = static_cast<size_t>(allocator.memory_stats().planned_peak_bytes);
  const auto has_arena = [&] {
    allocator.mark_step(kStream);
    const MemorySnapshot snapshot = allocator.snapshot();
    return std::ranges::any_of(snapshot.segments, [&](const SegmentInfo& segment) {
      return std::ranges::any_of(segment.blocks,
                                 [&](const BlockInfo& block) { return block.size == planned; });
    });
  };
  const Block early = allocator.allocate(40 * kMiB, kStream);
  EXPECT_FALSE(has_arena());
  allocator.free(early);
  step();
  EXPECT_TRUE(has_arena());
}

TEST_F(AllocatorPlan, TheArenaComesFromWhatTheStepBeforeUsed) {
  step();
  const int64_t reserved = allocator.stats().reserved;
  step();
  EXPECT_LE(allocator.stats().reserved, reserved + static_cast<int64_t>(2 * kMiB));
}

TEST_F(AllocatorPlan, AStepThatDiffersIsServedAsEverInTheSameMemory) {
  step();
  step();
  step(2);
  step(2);
  const int64_t reserved = allocator.stats().reserved;
  step();
  step(2);
  EXPECT_LE(allocator.stats().reserved, reserved + static_cast<int64_t>(4 * kMiB));
  EXPECT_EQ(allocator.stats().allocated, 0);
}

TEST_F(AllocatorPlan, ABlockThatOutlivesItsStepKeepsItsBytes) {
  step();
  allocator.mark_step(kStream);
  const Block late = allocator.allocate(3 * kMiB, kStream);
  std::memset(late.data, 77, late.bytes);
  step();
  step();
  EXPECT_EQ(static_cast<unsigned char*>(late.data)[late.bytes - 1], 77);
  allocator.free(late);
  step();
  EXPECT_EQ(allocator.stats().allocated, 0);
}

TEST_F(AllocatorPlan, AReportOfShortMemoryCountsItsBlocks) {
  step();
  step();
  allocator.mark_step(kStream);
  const Block planned = allocator.allocate(3 * kMiB, kStream);
  expect_error<OutOfMemoryError>(
      [&] {
        allocator.allocate(255 * kMiB, Stream{kCPU, 1});
      },
      "On loan 3.0 MiB", "3.0 MiB in 1 block");
  allocator.free(planned);
}

TEST_F(AllocatorPlan, SwitchingItOffGivesTheArenaBack) {
  step();
  allocator.mark_step(kStream);
  const Block held = allocator.allocate(3 * kMiB, kStream);
  allocator.set_planned(false);
  EXPECT_EQ(allocator.memory_stats().planned_peak_bytes, 0);
  allocator.free(held);
  allocator.empty_cache();
  EXPECT_EQ(memory.taken(), 0u);
}

TEST_F(AllocatorPlan, ASnapshotShowsThePlannedBlocks) {
  step();
  allocator.mark_step(kStream);
  const Block block = allocator.allocate(3 * kMiB, kStream);
  size_t live = 0;
  for (const SegmentInfo& segment : allocator.snapshot().segments) {
    uintptr_t at = segment.address;
    for (const BlockInfo& info : segment.blocks) {
      EXPECT_EQ(info.address, at);
      at += info.size;
      const bool is_live = info.state == BlockInfo::State::kActiveAllocated;
      EXPECT_EQ(info.requested_size, is_live ? 3 * kMiB : 0) << "nobody asked for a gap";
      if (!is_live) continue;
      ++live;
      EXPECT_EQ(info.address, reinterpret_cast<uintptr_t>(block.data));
    }
  }
  EXPECT_EQ(live, 1u);
}

TEST_F(AllocatorPlan, TheArenaIsNoFreePartOfItsSegment) {
  allocator.set_options(plain_segments());
  allocator.free(allocator.allocate(64 * kMiB, kStream));
  step();
  step();
  allocator.mark_step(kStream);
  const DeviceMemoryStats stats = allocator.memory_stats();
  ASSERT_GT(stats.planned_peak_bytes, 0);
  EXPECT_EQ(stats.inactive_split.all.current, 1) << "what is beside the arena";
  EXPECT_EQ(stats.inactive_split_bytes.all.current,
            static_cast<int64_t>(64 * kMiB) - stats.planned_peak_bytes);
}

RC_GTEST_PROP(PlannedPrograms, BlocksNeverOverlapWhateverTheStepsDo, ()) {
  FakeMemory memory(512 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  allocator.set_planned(true);
  struct Held {
    Block block;
    unsigned char pattern;
  };
  std::vector<Held> alive;
  const auto intact = [](const Held& held) {
    const auto* const data = static_cast<const unsigned char*>(held.block.data);
    for (size_t i = 0; i < held.block.bytes; i += 509) {
      if (data[i] != held.pattern) return false;
    }
    return true;
  };
  using Program = std::vector<std::pair<uint8_t, uint16_t>>;
  const Program program =
      *rc::gen::container<Program>(rc::gen::arbitrary<std::pair<uint8_t, uint16_t>>());
  const std::vector<uint8_t> changes =
      *rc::gen::container<std::vector<uint8_t>>(rc::gen::arbitrary<uint8_t>());
  unsigned char pattern = 0;
  // The same program is repeated with small occasional changes.
  for (size_t repeat = 0; repeat < std::min<size_t>(changes.size() + 2, 8); ++repeat) {
    const uint8_t change = repeat < changes.size() ? changes[repeat] : 0;
    allocator.mark_step(kStream);
    for (size_t i = 0; i < program.size(); ++i) {
      const auto& [choice, number] = program[i];
      if (choice % 2 == 0 || alive.empty()) {
        const size_t grown = change % 3 == 0 && i == change % program.size() ? 3000 : 0;
        const size_t bytes = number % 16 == 0 ? number * size_t{20} + 1 : number / 8 + 1u;
        alive.push_back({allocator.allocate(bytes + grown, kStream), ++pattern});
        std::memset(alive.back().block.data, alive.back().pattern, alive.back().block.bytes);
      } else {
        const auto at = alive.begin() + static_cast<long>(number % alive.size());
        RC_ASSERT(intact(*at));
        allocator.free(at->block);
        alive.erase(at);
      }
    }
    if (change % 4 == 3) continue;  // live blocks survive this step
    for (const Held& held : alive) {
      RC_ASSERT(intact(held));
      allocator.free(held.block);
    }
    alive.clear();
  }
  for (const Held& held : alive) {
    RC_ASSERT(intact(held));
    allocator.free(held.block);
  }
  allocator.set_planned(false);
  allocator.empty_cache();
  RC_ASSERT(memory.taken() == 0u);
  RC_ASSERT(memory.wrong_calls == 0);
  RC_ASSERT(allocator.wrong_frees() == 0);
}

}  // namespace
}  // namespace lockstep
