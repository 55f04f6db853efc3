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
  std::vector<int> cores;  ///< numbers of those it may run on, ascending; at least one
  /// What its control groups allow, in cores' worth of time.
  double quota = std::numeric_limits<double>::infinity();

  /// How many of them it can keep busy: the quota is rounded up. At least 1.
  int usable() const;
};

/// Of this process. Linux only: read from /proc and /sys under `root`, which tests replace.
CoreBudget core_budget(const std::filesystem::path& root = "/");

/// Threads that each of `local_size` ranks on a node may compute with if they share the budget. At
/// least 1.
int threads_for_rank(const CoreBudget& budget, int local_size);
/// The same where ranks may have been bound to cores of their own: `local_cores` are those of every
/// rank of the node, this one's too. A core is shared by the ranks that have it.
int threads_for_rank(const CoreBudget& budget, std::span<const std::vector<int>> local_cores);

/// "2 threads a rank: 8 cores allowed, 4 ranks on this node".
std::string describe_threads(int threads, const CoreBudget& budget, int local_size);

/// Numbers of cores as Linux writes them, "0-3,8".
std::string format_core_list(const std::vector<int>& cores);
/// Its inverse, ascending and each once. Throws ConfigError for anything else, and for numbers of
/// 65,536 and more.
std::vector<int> parse_core_list(std::string_view text);

}  // namespace lockstep::dist
