#include "core/memory/stats.h"

#include <array>
#include <string_view>

#include "core/base/check.h"

namespace lockstep {

namespace {

enum class Unit { kBytes, kCount };

/// A row of the table; rows are listed in its order.
struct StatRow {
  std::string_view key;
  std::string_view label;
  Unit unit;
  PoolStat DeviceMemoryStats::*stat;
};
using S = DeviceMemoryStats;
constexpr auto kStatRows = std::to_array<StatRow>({
    {"allocated_bytes", "Allocated memory", Unit::kBytes, &S::allocated_bytes},
    {"active_bytes", "Active memory", Unit::kBytes, &S::active_bytes},
    {"requested_bytes", "Requested memory", Unit::kBytes, &S::requested_bytes},
    {"reserved_bytes", "Reserved memory", Unit::kBytes, &S::reserved_bytes},
    {"inactive_split_bytes", "Non-releasable memory", Unit::kBytes, &S::inactive_split_bytes},
    {"allocation", "Allocations", Unit::kCount, &S::allocation},
    {"active", "Active allocations", Unit::kCount, &S::active},
    {"segment", "Reserved segments", Unit::kCount, &S::segment},
    {"inactive_split", "Non-releasable blocks", Unit::kCount, &S::inactive_split},
});

struct Counter {
  std::string_view key;
  int64_t DeviceMemoryStats::*value;
};
constexpr auto kCounters = std::to_array<Counter>({
    {"num_alloc_retries", &S::num_alloc_retries},
    {"num_ooms", &S::num_ooms},
    {"num_sync_all_streams", &S::num_sync_all_streams},
    {"num_device_alloc", &S::num_device_alloc},
    {"num_device_free", &S::num_device_free},
    {"num_stitched", &S::num_stitched},
    {"num_stream_waits", &S::num_stream_waits},
    {"max_split_size", &S::max_split_size},
    {"planned_peak_bytes", &S::planned_peak_bytes},
    {"planned_lower_bound", &S::planned_lower_bound},
});

/// Formats `value` in the unit that suits `whole`, so that the rows of one quantity are comparable.
std::string amount(Unit unit, int64_t value, int64_t whole) {
  if (unit == Unit::kCount) {
    constexpr std::string_view kUnits[] = {" ", "K", "M", "G"};
    size_t i = 0;
    for (; whole >= 750'000 && i + 1 < std::size(kUnits); ++i, whole /= 1000) value /= 1000;
    return fmt::format("{:7} {} ", value, kUnits[i]);
  }
  constexpr std::string_view kUnits[] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t i = 0;
  for (; whole >= 768 * 1024 && i + 1 < std::size(kUnits); ++i, whole /= 1024) value /= 1024;
  return fmt::format("{:6} {}", value, kUnits[i]);
}

std::string row(std::string_view label, Unit unit, const Stat& stat, const Stat& whole) {
  return fmt::format("| {:<21} | {} | {} | {} | {} |\n", label,
                     amount(unit, stat.current, whole.current), amount(unit, stat.peak, whole.peak),
                     amount(unit, stat.allocated, whole.allocated),
                     amount(unit, stat.freed, whole.freed));
}

}  // namespace

std::map<std::string, int64_t> flatten(const DeviceMemoryStats& stats) {
  std::map<std::string, int64_t> flat;
  for (const StatRow& quantity : kStatRows) {
    const PoolStat& pools = stats.*quantity.stat;
    for (const auto& [pool, stat] : {std::pair{"all", &pools.all},
                                     {"small_pool", &pools.small_pool},
                                     {"large_pool", &pools.large_pool}}) {
      const std::string prefix = fmt::format("{}.{}.", quantity.key, pool);
      flat[prefix + "current"] = stat->current;
      flat[prefix + "peak"] = stat->peak;
      flat[prefix + "allocated"] = stat->allocated;
      flat[prefix + "freed"] = stat->freed;
    }
  }
  for (const Counter& counter : kCounters) flat[std::string(counter.key)] = stats.*counter.value;
  return flat;
}

std::string memory_summary(const DeviceMemoryStats& stats, Device device) {
  constexpr size_t kWidth = 77;
  const std::string double_line = fmt::format("|{:=<{}}|\n", "", kWidth - 2);
  const std::string line = fmt::format("|{:-<{}}|\n", "", kWidth - 2);
  std::string table = double_line;
  table += fmt::format("| {:<{}} |\n", "Memory of " + to_string(device), kWidth - 4);
  table += line;
  const std::string events =
      fmt::format("out of memory: {}    retries: {}    waits for the device: {}", stats.num_ooms,
                  stats.num_alloc_retries, stats.num_sync_all_streams);
  table += fmt::format("| {:<{}} |\n", events, kWidth - 4);
  table += double_line;
  table += "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n";
  for (const StatRow& quantity : kStatRows) {
    const PoolStat& pools = stats.*quantity.stat;
    table += line;
    table += row(quantity.label, quantity.unit, pools.all, pools.all);
    table += row("      from large pool", quantity.unit, pools.large_pool, pools.all);
    table += row("      from small pool", quantity.unit, pools.small_pool, pools.all);
  }
  if (stats.planned_peak_bytes > 0) {
    table += line;
    const std::string plan = fmt::format("plan: {} bytes at its peak; no plan needs fewer than {}",
                                         stats.planned_peak_bytes, stats.planned_lower_bound);
    table += fmt::format("| {:<{}} |\n", plan, kWidth - 4);
  }
  return table + double_line;
}

}  // namespace lockstep
