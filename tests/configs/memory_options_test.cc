#include "configs/memory_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "tests/configs/examples.h"
#include "tests/core/expect_error.h"

namespace lockstep::config {
namespace {

TEST(MemoryConfig, WhatIsNotSetIsAsItWas) {
  AllocatorOptions defaults;
  defaults.stream_reuse = StreamReuse::kPoll;
  defaults.reserve_ratio = 3;
  EXPECT_EQ(allocator_options({}, defaults), defaults);
}

TEST(MemoryConfig, AResolvedConfigSaysWhatTheEnvironmentAsksFor) {
  EXPECT_EQ(allocator_options(smallest_with({}).memory(), {}),
            allocator_options_from_environment(DeviceType::kCPU));
  for (const char* gpu : {"device=cuda", "device=cuda:1"}) {
    EXPECT_EQ(allocator_options(smallest_with({gpu}).memory(), {}),
              allocator_options_from_environment(DeviceType::kCUDA));
  }
  EXPECT_EQ(smallest_with({"device=cuda"}).memory().reserve_ratio(), 1.15);
  EXPECT_EQ(smallest_with({}).memory().reserve_ratio(), 1.02);
  EXPECT_EQ(smallest_with({}).memory().snapshot_step(), 0);
  EXPECT_FALSE(smallest_with({}).memory().planned());
}

TEST(MemoryConfig, EveryOptionOfTheAllocatorCanBeSet) {
  const RunConfig config = smallest_with(
      {"memory.expandable_segments=false", "memory.max_split_size_mb=64",
       "memory.roundup_power2_divisions=\"[256:1,512:2,>:4]\"",
       "memory.garbage_collection_threshold=0.8", "memory.per_process_memory_fraction=0.5",
       "memory.large_segment_size_mb=32", "memory.stream_reuse=POLL", "memory.reserve_ratio=1.5",
       "memory.record_call_sites=true"});
  EXPECT_EQ(allocator_options(config.memory(), {}),
            parse_allocator_options(
                "expandable_segments:False,max_split_size_mb:64,roundup_power2_divisions:[256:1,"
                "512:2,>:4],garbage_collection_threshold:0.8,per_process_memory_fraction:0.5,"
                "large_segment_size_mb:32,stream_reuse:poll,reserve_ratio:1.5,"
                "record_call_sites:True",
                "test"));
}

TEST(MemoryConfig, FieldsSayAllThatOptionsHold) {
  AllocatorOptions options;
  options.expandable_segments = false;
  options.max_split_size = (size_t{64} << 20) + 512;
  options.roundup_power2_divisions = {1, 1, 4};
  options.garbage_collection_threshold = 0.7;
  options.per_process_memory_fraction = 0.3;
  options.large_segment_size = size_t{5} << 20;
  options.stream_reuse = StreamReuse::kPoll;
  options.reserve_ratio = 1.1;
  options.record_call_sites = true;
  for (const AllocatorOptions& each : {options, AllocatorOptions()}) {
    std::vector<std::string> assignments;
    for (const auto& [field, value] : memory_fields(each)) {
      assignments.push_back("memory." + field + "=" + value);
    }
    EXPECT_EQ(allocator_options(smallest_with(assignments).memory(), {}), each);
  }
}

TEST(MemoryConfig, NoLimitCanBeSaidOverALimit) {
  AllocatorOptions defaults;
  defaults.max_split_size = size_t{64} << 20;
  EXPECT_EQ(allocator_options(smallest_with({"memory.max_split_size_mb=0"}).memory(), defaults)
                .max_split_size,
            AllocatorOptions::kUnlimited);
}

TEST(MemoryConfig, MistakesAreFoundWhenTheConfigIsRead) {
  expect_error<SourceError>([] { smallest_with({"memory.roundup_power2_divisions=3"}); },
                            "roundup_power2_divisions cannot be \"3\"", "a power of two");
  expect_error<SourceError>([] { smallest_with({"memory.max_split_size_mb=8"}); },
                            "max_split_size_mb cannot be \"8\"", "large_segment_size_mb");
  expect_error<SourceError>([] { smallest_with({"memory.reserve_ratio=0.5"}); },
                            "memory.reserve_ratio");
}

}  // namespace
}  // namespace lockstep::config
