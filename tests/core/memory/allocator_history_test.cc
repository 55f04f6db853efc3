// What a CachingAllocator's history, its peaks and its snapshots tell of each block.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/current_scope.h"
#include "core/base/phase.h"
#include "core/base/spans/span_recorder.h"
#include "core/memory/caching_allocator.h"
#include "tests/core/memory/allocator_setup.h"
#include "tests/core/memory/fake_memory.h"

namespace lockstep {
namespace {

using Action = TraceEntry::Action;
using testing::ElementsAre;

struct NamedOperator : OperatorName {
  explicit NamedOperator(const char* name) { set_name(name); }
};

struct AllocatorRecord : ::testing::Test {
  Block get(size_t bytes) { return allocator.allocate(bytes, kStream); }
  std::vector<size_t> sizes_at_peak() const {
    std::vector<size_t> sizes;
    for (const BlockInfo& block : allocator.blocks_at_peak()) sizes.push_back(block.size / kMiB);
    std::ranges::sort(sizes);
    return sizes;
  }

  FakeMemory memory{128 * kMiB};
  CachingAllocator allocator{kCPU, memory};
};

TEST_F(AllocatorRecord, EntriesTellWhoAllocatedAndWhen) {
  const NamedOperator mm("mm");
  allocator.record_memory_history(10, /*stacks=*/false);
  const auto now_us = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  };
  const int64_t before = now_us();
  {
    const ModuleScope module("h.3");
    const OperatorScope op(mm);
    const PhaseGuard phase(Phase::kBackward);
    allocator.free(get(512));
  }
  get(512);
  allocator.note("half way");
  const std::vector<TraceEntry> trace = allocator.snapshot().trace;
  ASSERT_EQ(trace.size(), 7u);
  for (const size_t i : {1u, 2u, 3u}) {
    EXPECT_STREQ(trace[i].context.op, "mm") << i;
    EXPECT_EQ(trace[i].context.module, "h.3") << i;
    EXPECT_EQ(trace[i].context.phase, Phase::kBackward) << i;
    EXPECT_TRUE(trace[i].context.stack.empty()) << i;
  }
  EXPECT_EQ(trace[4].action, Action::kAlloc);
  EXPECT_EQ(trace[4].context.op, nullptr);
  EXPECT_EQ(trace[4].context.module, "");
  EXPECT_EQ(trace[4].context.phase, Phase::kForward);
  EXPECT_EQ(trace[5].action, Action::kUserDefined);
  EXPECT_EQ(trace[5].label, "half way");
  EXPECT_EQ(trace[5].stream, 0);
  int64_t last = before;
  for (const TraceEntry& entry : trace) {
    EXPECT_GE(entry.time_us, last);
    last = entry.time_us;
  }
  EXPECT_LE(last, now_us());
}

TEST_F(AllocatorRecord, ItsLengthIsTheOneThatWasAskedFor) {
  allocator.record_memory_history(3);
  for (int i = 0; i < 5; ++i) allocator.note(std::to_string(i));
  std::vector<std::string> labels;
  for (const TraceEntry& entry : allocator.snapshot().trace) labels.push_back(entry.label);
  EXPECT_THAT(labels, ElementsAre("3", "4", "")) << "and the snapshot's own entry";
  allocator.record_memory_history(3);
  EXPECT_EQ(allocator.snapshot().trace.size(), 1u) << "it starts again";
  allocator.record_memory_history(0);
  EXPECT_TRUE(allocator.snapshot().trace.empty());
  allocator.note("nobody keeps it");
  EXPECT_TRUE(allocator.snapshot().trace.empty());
}

TEST_F(AllocatorRecord, BlocksFromBeforeItBeganAreNoPartOfThePeak) {
  const Block early = get(20 * kMiB);
  allocator.record_memory_history(100, /*stacks=*/false);
  const Block a = get(4 * kMiB);
  allocator.free(early);
  const Block b = get(3 * kMiB);
  allocator.free(a);
  get(2 * kMiB);
  EXPECT_THAT(sizes_at_peak(), ElementsAre(3, 4));
  const Block d = get(3 * kMiB);
  EXPECT_THAT(sizes_at_peak(), ElementsAre(2, 3, 3)) << "8 MiB are more than 7";
  allocator.free(d);
  get(3 * kMiB);
  EXPECT_THAT(sizes_at_peak(), ElementsAre(2, 3, 3)) << "as many bytes are no new peak";
  allocator.free(b);
  allocator.reset_peak();
  EXPECT_THAT(sizes_at_peak(), ElementsAre(2, 3));
  get(1 * kMiB);
  EXPECT_THAT(sizes_at_peak(), ElementsAre(1, 2, 3));
  allocator.record_memory_history(100, /*stacks=*/false);
  EXPECT_TRUE(allocator.blocks_at_peak().empty());
}

TEST_F(AllocatorRecord, BlocksOfTheRecordBeforeAreNoPartOfThePeak) {
  allocator.record_memory_history(100, /*stacks=*/false);
  const Block first = get(20 * kMiB);
  const Block last = get(24 * kMiB);
  allocator.record_memory_history(100, /*stacks=*/false);
  get(3 * kMiB);
  EXPECT_THAT(sizes_at_peak(), ElementsAre(3));
  allocator.free(first);
  EXPECT_THAT(sizes_at_peak(), ElementsAre(3)) << "the first of the record before is no part of it";
  allocator.free(last);
  EXPECT_THAT(sizes_at_peak(), ElementsAre(3)) << "neither is the last";
}

TEST_F(AllocatorRecord, BlocksAtThePeakAreSortedByOperatorAndModule) {
  const NamedOperator add("add"), mm("mm");
  allocator.record_memory_history(100, /*stacks=*/false);
  std::vector<Block> blocks;
  for (const auto& [op, module] : {std::pair{&mm, "h.1"}, {&add, "h.1"}, {&mm, "h.0"}}) {
    const OperatorScope scope(*op);
    const ModuleScope of(module);
    blocks.push_back(get(kMiB));
  }
  blocks.push_back(get(kMiB));
  allocator.free(blocks[0]);
  std::vector<std::pair<std::string, std::string>> names;
  for (const BlockInfo& block : allocator.blocks_at_peak()) {
    names.emplace_back(block.context.op == nullptr ? "" : block.context.op, block.context.module);
    EXPECT_EQ(block.size, kMiB);
    EXPECT_EQ(block.requested_size, kMiB);
    EXPECT_EQ(block.state, BlockInfo::State::kActiveAllocated);
  }
  EXPECT_THAT(names, ElementsAre(std::pair("", ""), std::pair("add", "h.1"), std::pair("mm", "h.0"),
                                 std::pair("mm", "h.1")));
}

TEST_F(AllocatorRecord, PlannedBlocksAreAmongThoseAtThePeak) {
  allocator.set_planned(true);
  const auto step = [&] {
    allocator.mark_step(kStream);
    const Block a = get(4 * kMiB), b = get(2 * kMiB);
    allocator.free(a);
    return b;
  };
  allocator.free(step());
  allocator.free(step());
  allocator.record_memory_history(100, /*stacks=*/false);
  const Block live = step();
  ASSERT_GT(allocator.memory_stats().planned_peak_bytes, 0);
  EXPECT_THAT(sizes_at_peak(), ElementsAre(2, 4));
  size_t bytes = 0, active = 0;
  const MemorySnapshot snapshot = allocator.snapshot();
  for (const SegmentInfo& segment : snapshot.segments) {
    size_t sum = 0;
    for (const BlockInfo& block : segment.blocks) sum += block.size;
    EXPECT_EQ(sum, segment.total_size);
    bytes += segment.allocated_size;
    active += segment.active_size;
  }
  EXPECT_EQ(bytes, 2 * kMiB);
  EXPECT_EQ(active, 2 * kMiB);
  allocator.free(live);
}

TEST_F(AllocatorRecord, StacksOfLargeBlocksAreKeptOnRequest) {
  AllocatorOptions options;
  options.record_call_sites = true;
  allocator.set_options(options);
  const std::vector<Block> blocks = {get(kMiB), get(kMiB + 1)};
  std::vector<bool> stacks;
  const MemorySnapshot with_stacks = allocator.snapshot();
  for (const BlockInfo& block : with_stacks.segments.at(0).blocks) {
    if (block.state == BlockInfo::State::kActiveAllocated) {
      stacks.push_back(!block.context.stack.empty());
    }
  }
  EXPECT_THAT(stacks, ElementsAre(false, true));
  allocator.free(blocks[1]);
  allocator.set_options({});
  get(kMiB + 1);  // the same place
  const MemorySnapshot without = allocator.snapshot();
  for (const BlockInfo& block : without.segments.at(0).blocks) {
    EXPECT_TRUE(block.context.stack.empty());
  }
}

TEST_F(AllocatorRecord, ASnapshotDescribesEachSegment) {
  allocator.set_options(plain_segments());
  const Stream other{kCPU, 4};
  const PoolId pool = allocator.create_pool();
  const Block small = get(1000);
  Block large;
  {
    const PoolGuard guard(allocator, pool);
    large = allocator.allocate(19 * kMiB - 100, other);
  }
  allocator.set_options({});
  const Block in_range = get(3 * kMiB);
  const MemorySnapshot snapshot = allocator.snapshot();
  EXPECT_EQ(snapshot.device, kCPU);
  EXPECT_TRUE(snapshot.options.expandable_segments);
  ASSERT_EQ(snapshot.segments.size(), 3u);
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_LT(snapshot.segments[i - 1].address, snapshot.segments[i].address);
  }
  const auto segment_of = [&](const Block& block) {
    for (const SegmentInfo& segment : snapshot.segments) {
      if (segment.address == reinterpret_cast<uintptr_t>(block.data)) return segment;
    }
    ADD_FAILURE() << "no segment begins with the block";
    return SegmentInfo{};
  };
  using Sizes = std::tuple<size_t, size_t, size_t, size_t>;
  const auto sizes = [](const SegmentInfo& segment) {
    return Sizes{segment.total_size, segment.allocated_size, segment.active_size,
                 segment.requested_size};
  };
  using Kind = std::tuple<int32_t, bool, bool, PoolId>;
  const auto kind = [](const SegmentInfo& segment) {
    EXPECT_EQ(segment.device, kCPU);
    return Kind{segment.stream, segment.is_large, segment.is_expandable, segment.pool};
  };
  EXPECT_EQ(sizes(segment_of(small)), (Sizes{2 * kMiB, 1024, 1024, 1000}));
  EXPECT_EQ(kind(segment_of(small)), (Kind{0, false, false, 0}));
  EXPECT_EQ(sizes(segment_of(large)), (Sizes{20 * kMiB, 20 * kMiB, 20 * kMiB, 19 * kMiB - 100}));
  EXPECT_EQ(kind(segment_of(large)), (Kind{4, true, false, pool}));
  EXPECT_EQ(sizes(segment_of(in_range)), (Sizes{4 * kMiB, 3 * kMiB, 3 * kMiB, 3 * kMiB}));
  EXPECT_EQ(kind(segment_of(in_range)), (Kind{0, true, true, 0}));
  ASSERT_EQ(segment_of(small).blocks.size(), 2u);
  EXPECT_EQ(segment_of(small).blocks[1].state, BlockInfo::State::kInactive);
  EXPECT_EQ(segment_of(small).blocks[1].requested_size, 0u);
}

TEST_F(AllocatorRecord, RunsOfARangeAreSegmentsOfTheirOwn) {
  std::vector<Block> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(get(2 * kMiB));
  for (const size_t i : {1u, 3u}) allocator.free(blocks[i]);
  allocator.empty_cache();
  std::vector<uintptr_t> addresses;
  for (const SegmentInfo& segment : allocator.snapshot().segments) {
    addresses.push_back(segment.address - reinterpret_cast<uintptr_t>(blocks[0].data));
    EXPECT_EQ(segment.total_size, 2 * kMiB);
    EXPECT_EQ(segment.blocks.size(), 1u);
  }
  EXPECT_THAT(addresses, ElementsAre(0, 4 * kMiB, 8 * kMiB));
  EXPECT_EQ(allocator.memory_stats().segment.all, (Stat{3, 3, 3, 0}));
}

TEST_F(AllocatorRecord, RequestsAndFreesAreMomentsOfAProfile) {
  SpanRecorder recorder({.threads = 2, .spans = 64, .text = 4096});
  recorder.start();
  allocator.free(get(1000));
  allocator.record_spans(true);
  const Block small = get(1000), large = get(3 * kMiB);
  allocator.free(small);
  allocator.free(large);
  allocator.record_spans(false);
  allocator.free(get(1000));
  const SpanRecording recording = recorder.stop();
  ASSERT_EQ(recording.threads.size(), 1u);
  using Moment = std::tuple<std::string, uint64_t, int64_t>;
  std::vector<Moment> moments;
  for (const SpanRecord& span : recording.threads[0].spans) {
    if (span.kind != SpanKind::kMemory) continue;
    moments.emplace_back(recording.threads[0].name(span), span.sequence, span.bytes);
  }
  const auto at = [](const Block& block) { return reinterpret_cast<uint64_t>(block.data); };
  EXPECT_THAT(
      moments,
      ElementsAre(Moment{"allocate", at(small), 1024}, Moment{"allocate", at(large), 3 << 20},
                  Moment{"free", at(small), -1024}, Moment{"free", at(large), -(3 << 20)}));
}

}  // namespace
}  // namespace lockstep
