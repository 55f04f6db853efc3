#include "core/memory/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace lockstep {
namespace {

using testing::HasSubstr;

DeviceMemoryStats sample_stats() {
  DeviceMemoryStats stats;
  stats.allocated_bytes.all = {5 << 20, 100 << 20, int64_t{1} << 40, 7};
  stats.allocated_bytes.large_pool = {4 << 20, 90 << 20, 12, 5};
  stats.segment.small_pool.peak = 3;
  stats.inactive_split_bytes.all.freed = 11;
  stats.num_ooms = 2;
  return stats;
}

TEST(MemoryStats, FlattenUsesPyTorchsNames) {
  const auto flat = flatten(sample_stats());
  EXPECT_EQ(flat.at("allocated_bytes.all.current"), 5 << 20);
  EXPECT_EQ(flat.at("allocated_bytes.all.peak"), 100 << 20);
  EXPECT_EQ(flat.at("allocated_bytes.all.allocated"), int64_t{1} << 40);
  EXPECT_EQ(flat.at("allocated_bytes.all.freed"), 7);
  EXPECT_EQ(flat.at("allocated_bytes.large_pool.peak"), 90 << 20);
  EXPECT_EQ(flat.at("segment.small_pool.peak"), 3);
  EXPECT_EQ(flat.at("inactive_split_bytes.all.freed"), 11);
  EXPECT_EQ(flat.at("num_ooms"), 2);
  EXPECT_EQ(flat.at("max_split_size"), -1);
  for (const char* quantity :
       {"allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
        "active_bytes", "inactive_split_bytes", "requested_bytes"}) {
    for (const char* pool : {"all", "small_pool", "large_pool"}) {
      for (const char* metric : {"current", "peak", "allocated", "freed"}) {
        EXPECT_TRUE(flat.contains(std::string(quantity) + "." + pool + "." + metric));
      }
    }
  }
  EXPECT_EQ(flat.size(), 9u * 3 * 4 + 10);
}

TEST(MemoryStats, SummaryIsATableOfEqualLines) {
  DeviceMemoryStats stats = sample_stats();
  stats.planned_peak_bytes = 1000;
  stats.planned_lower_bound = 900;
  const std::string table = memory_summary(stats, parse_device("host:0"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.size(), 77u) << line;
    EXPECT_EQ(line.front(), '|');
    EXPECT_EQ(line.back(), '|');
  }
  EXPECT_THAT(table, HasSubstr("Memory of host:0"));
  EXPECT_THAT(table, HasSubstr("out of memory: 2"));
  EXPECT_THAT(table, HasSubstr("| Allocated memory      |   5120 KiB | 102400 KiB |   1024 GiB |"));
  EXPECT_THAT(table, HasSubstr("|       from large pool |   4096 KiB |  92160 KiB |      0 GiB |"));
  EXPECT_THAT(table, HasSubstr("1000 bytes at its peak"));
}

TEST(MemoryStats, EqualityLooksAtEveryPool) {
  const DeviceMemoryStats stats = sample_stats();
  DeviceMemoryStats other = stats;
  EXPECT_EQ(stats, other);
  other.active.small_pool.freed = 1;
  EXPECT_FALSE(stats == other);
}

}  // namespace
}  // namespace lockstep
