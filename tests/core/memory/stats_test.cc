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

TEST(MemoryStats, BytesHaveTheUnitOfTheWholeUpToPebibytes) {
  DeviceMemoryStats stats = sample_stats();
  stats.allocated_bytes.all.peak = int64_t{5} << 40;
  stats.allocated_bytes.all.allocated = int64_t{3} << 50;
  stats.allocated_bytes.all.freed = (int64_t{768} << 10) - 1;
  const std::string table = memory_summary(stats, kCPU);
  EXPECT_THAT(table, HasSubstr("|   5120 GiB |   3072 TiB | 786431 B   |")) << table;
  stats.allocated_bytes.all.allocated = int64_t{4000} << 50;
  EXPECT_THAT(memory_summary(stats, kCPU), HasSubstr("|   4000 PiB | 786431 B   |"));
}

TEST(MemoryStats, CountsHaveTheUnitOfTheWhole) {
  DeviceMemoryStats stats = sample_stats();
  stats.allocation.all.allocated = 2'500'000'000;
  stats.allocation.small_pool.allocated = 2'400'000'000;
  stats.allocation.all.freed = 900'000;
  stats.allocation.all.peak = 749'999;
  const std::string table = memory_summary(stats, kCPU);
  EXPECT_THAT(
      table,
      HasSubstr("| Allocations           |       0    |  749999    |    2500 M  |     900 K  |"))
      << table;
  EXPECT_THAT(table, HasSubstr("|       from small pool |       0    |       0    |    2400 M  |"))
      << table;
  stats.allocation.all.allocated = 2'500'000'000'000;
  stats.allocation.all.freed = int64_t{9'000'000} * 1'000'000'000;
  EXPECT_THAT(memory_summary(stats, kCPU), HasSubstr("|    2500 G  | 9000000 G  |"));
}

TEST(MemoryStats, TheTableHasEachQuantityWithItsPools) {
  DeviceMemoryStats stats;
  int64_t next = 1;
  for (PoolStat* quantity : {&stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes,
                             &stats.reserved_bytes, &stats.inactive_split_bytes, &stats.allocation,
                             &stats.active, &stats.segment, &stats.inactive_split}) {
    for (Stat* stat : {&quantity->all, &quantity->large_pool, &quantity->small_pool}) {
      *stat = {next, next + 1, next + 2, next + 3};
      next += 4;
    }
  }
  stats.allocated_bytes.all.current = 768 * 1024 - 1;
  stats.active_bytes.all.current = 768 * 1024;
  stats.active.all.peak = 750'000;
  stats.num_ooms = 1;
  stats.num_alloc_retries = 2;
  stats.num_sync_all_streams = 3;
  stats.planned_peak_bytes = 5;
  stats.planned_lower_bound = 4;
  EXPECT_EQ(memory_summary(stats, kCPU),
            R"(|===========================================================================|
| Memory of cpu                                                             |
|---------------------------------------------------------------------------|
| out of memory: 1    retries: 2    waits for the device: 3                 |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      | 786431 B   |      2 B   |      3 B   |      4 B   |
|       from large pool |      5 B   |      6 B   |      7 B   |      8 B   |
|       from small pool |      9 B   |     10 B   |     11 B   |     12 B   |
|---------------------------------------------------------------------------|
| Active memory         |    768 KiB |     14 B   |     15 B   |     16 B   |
|       from large pool |      0 KiB |     18 B   |     19 B   |     20 B   |
|       from small pool |      0 KiB |     22 B   |     23 B   |     24 B   |
|---------------------------------------------------------------------------|
| Requested memory      |     25 B   |     26 B   |     27 B   |     28 B   |
|       from large pool |     29 B   |     30 B   |     31 B   |     32 B   |
|       from small pool |     33 B   |     34 B   |     35 B   |     36 B   |
|---------------------------------------------------------------------------|
| Reserved memory       |     37 B   |     38 B   |     39 B   |     40 B   |
|       from large pool |     41 B   |     42 B   |     43 B   |     44 B   |
|       from small pool |     45 B   |     46 B   |     47 B   |     48 B   |
|---------------------------------------------------------------------------|
| Non-releasable memory |     49 B   |     50 B   |     51 B   |     52 B   |
|       from large pool |     53 B   |     54 B   |     55 B   |     56 B   |
|       from small pool |     57 B   |     58 B   |     59 B   |     60 B   |
|---------------------------------------------------------------------------|
| Allocations           |      61    |      62    |      63    |      64    |
|       from large pool |      65    |      66    |      67    |      68    |
|       from small pool |      69    |      70    |      71    |      72    |
|---------------------------------------------------------------------------|
| Active allocations    |      73    |     750 K  |      75    |      76    |
|       from large pool |      77    |       0 K  |      79    |      80    |
|       from small pool |      81    |       0 K  |      83    |      84    |
|---------------------------------------------------------------------------|
| Reserved segments     |      85    |      86    |      87    |      88    |
|       from large pool |      89    |      90    |      91    |      92    |
|       from small pool |      93    |      94    |      95    |      96    |
|---------------------------------------------------------------------------|
| Non-releasable blocks |      97    |      98    |      99    |     100    |
|       from large pool |     101    |     102    |     103    |     104    |
|       from small pool |     105    |     106    |     107    |     108    |
|---------------------------------------------------------------------------|
| plan: 5 bytes at its peak; no plan needs fewer than 4                     |
|===========================================================================|
)");
  stats.planned_peak_bytes = 0;
  EXPECT_THAT(memory_summary(stats, kCPU), testing::Not(HasSubstr("plan:")));
}

TEST(MemoryStats, FlattenHasEachCounter) {
  DeviceMemoryStats stats;
  int64_t next = 1;
  for (int64_t* counter : {&stats.num_alloc_retries, &stats.num_ooms, &stats.num_sync_all_streams,
                           &stats.num_device_alloc, &stats.num_device_free, &stats.num_stitched,
                           &stats.num_stream_waits, &stats.max_split_size,
                           &stats.planned_peak_bytes, &stats.planned_lower_bound}) {
    *counter = next++;
  }
  const auto flat = flatten(stats);
  next = 1;
  for (const char* key : {"num_alloc_retries", "num_ooms", "num_sync_all_streams",
                          "num_device_alloc", "num_device_free", "num_stitched", "num_stream_waits",
                          "max_split_size", "planned_peak_bytes", "planned_lower_bound"}) {
    EXPECT_EQ(flat.at(key), next++) << key;
  }
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
