#include "dist/rendezvous/core_budget.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <thread>

#include "core/base/check.h"
#include "core/base/control_groups.h"
#include "core/base/parse_number.h"

namespace lockstep::dist {
namespace {

constexpr int kMostCores = 65536;

/// Returns for example "8 cores" or "1 rank".
std::string counted(int count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Returns the cores of the calling thread's affinity mask; cpu_set_t covers cores below 1024.
std::vector<int> affinity() {
  std::vector<int> cores;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) {
    cores.resize(std::max(1u, std::thread::hardware_concurrency()));
    std::iota(cores.begin(), cores.end(), 0);
  }
  return cores;
}

std::vector<int> allowed_cores(const std::filesystem::path& root) {
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  std::ifstream stream(root / "proc/self/status");
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(kKey)) continue;
    const size_t begin = line.find_first_not_of(" \t", kKey.size());
    if (begin == line.npos) break;
    std::vector<int> cores = parse_core_list(std::string_view(line).substr(begin));
    if (!cores.empty()) return cores;
  }
  return affinity();
}

int at_least_one(double threads) { return std::max(1, static_cast<int>(std::floor(threads))); }

}  // namespace

int CoreBudget::usable() const {
  return std::max(1,
                  static_cast<int>(std::min(static_cast<double>(cores.size()), std::ceil(quota))));
}

CoreBudget core_budget(const std::filesystem::path& root) {
  return {.cores = allowed_cores(root), .quota = core_quota(root)};
}

int threads_for_rank(const CoreBudget& budget, int local_size) {
  return std::max(1, budget.usable() / std::max(1, local_size));
}

int threads_for_rank(const CoreBudget& budget, std::span<const std::vector<int>> local_cores) {
  constexpr double kRounding = 1e-9;  // three times 1/3 may add up to less than one
  std::map<int, int> ranks_on;
  for (const std::vector<int>& cores : local_cores) {
    for (const int core : cores) ++ranks_on[core];
  }
  double share = 0;
  for (const int core : budget.cores) share += 1.0 / std::max(1, ranks_on[core]);
  const double ranks = static_cast<double>(std::max<size_t>(1, local_cores.size()));
  return at_least_one(std::min(share + kRounding, std::ceil(budget.quota) / ranks));
}

std::string describe_threads(int threads, const CoreBudget& budget, int local_size) {
  const bool by_quota = budget.quota < static_cast<double>(budget.cores.size());
  return fmt::format(
      "{} a rank: {} allowed{}, {} on this node", counted(threads, "thread"),
      counted(budget.usable(), "core"),
      by_quota ? fmt::format(" by a quota of {:.4g}, of {}", budget.quota, budget.cores.size())
               : "",
      counted(local_size, "rank"));
}

std::string format_core_list(const std::vector<int>& cores) {
  std::string text;
  for (size_t i = 0; i < cores.size();) {
    size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cores[i]);
    if (last > i) text += fmt::format("-{}", cores[last]);
    i = last + 1;
  }
  return text;
}

std::vector<int> parse_core_list(std::string_view text) {
  const auto number = [&](std::string_view digits) {
    const std::optional<int> value = parse_number<int>(digits);
    LS_CHECK(value && *value >= 0 && *value < kMostCores, ConfigError,
             "[cores] \"{:.100}\" is no list of cores: expected numbers below {} and ascending "
             "ranges, such as 0-3,8.",
             text, kMostCores);
    return *value;
  };
  std::vector<bool> has(kMostCores);
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view range = text.substr(begin, end - begin);
    const size_t dash = range.find('-');
    const int first = number(range.substr(0, dash));
    const int last = dash == range.npos ? first : number(range.substr(dash + 1));
    LS_CHECK(first <= last, ConfigError, "[cores] \"{:.100}\": the range {} descends.", text,
             range);
    std::fill(has.begin() + first, has.begin() + last + 1, true);
    begin = end + 1;
  }
  std::vector<int> cores;
  for (int core = 0; core < kMostCores; ++core) {
    if (has[static_cast<size_t>(core)]) cores.push_back(core);
  }
  return cores;
}

}  // namespace lockstep::dist
