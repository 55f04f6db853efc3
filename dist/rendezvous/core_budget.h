#pragma once

#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::dist {

/// The cores that a process may keep busy.
struct CoreBudget {
  std::vector<int> cores;  ///< cores it may run on, ascending; at least one
  /// CPU quota of its control groups, in cores.
  double quota = std::numeric_limits<double>::infinity();

  /// Number of cores it can keep busy, with the quota rounded up; at least 1.
  int usable() const;
};

/// Returns the budget of this process. Linux only: read from /proc and /sys under `root`, which
/// tests replace.
CoreBudget core_budget(const std::filesystem::path& root = "/");

/// Returns the number of compute threads for each of `local_size` ranks that share the budget on a
/// node; at least 1.
int threads_for_rank(const CoreBudget& budget, int local_size);
/// Variant for ranks that may be bound to different cores: `local_cores` holds the cores of every
/// rank of the node, including this one. A core is shared by the ranks that may use it.
int threads_for_rank(const CoreBudget& budget, std::span<const std::vector<int>> local_cores);

/// Returns for example "2 threads a rank: 8 cores allowed, 4 ranks on this node".
std::string describe_threads(int threads, const CoreBudget& budget, int local_size);

/// Formats a list of cores like Linux: "0-3,8".
std::string format_core_list(const std::vector<int>& cores);
/// Inverse of format_core_list; the result is ascending without duplicates. Throws ConfigError for
/// malformed text and for numbers of 65,536 and more.
std::vector<int> parse_core_list(std::string_view text);

}  // namespace lockstep::dist
