#include "core/base/control_groups.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace lockstep {

namespace fs = std::filesystem;

std::vector<fs::path> control_groups(const fs::path& root, std::string_view controller) {
  std::vector<fs::path> folders;
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {  // "hierarchy:controllers:/path"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool version2 = controllers.empty();
    if (!version2 &&
        ("," + controllers + ",").find("," + std::string(controller) + ",") == line.npos) {
      continue;
    }
    const fs::path mount = version2 ? root / "sys/fs/cgroup" : root / "sys/fs/cgroup" / controller;
    // In a container the path may lie outside the mounted hierarchy; then only the mount's root
    // exists.
    for (fs::path path = fs::path(line.substr(second + 1)).relative_path(); !path.empty();
         path = path.parent_path()) {
      folders.push_back(mount / path);
    }
    folders.push_back(mount);
  }
  return folders;
}

double core_quota(const fs::path& root) {
  double quota = std::numeric_limits<double>::infinity();
  const auto limit = [&](double runtime, double period) {  // -1: no quota
    if (runtime > 0 && period > 0) quota = std::min(quota, runtime / period);
  };
  for (const fs::path& group : control_groups(root, "cpu")) {
    double runtime = 0, period = 0;
    std::ifstream version2(group / "cpu.max");  // "quota period" or "max period", in microseconds
    if (version2 >> runtime >> period) limit(runtime, period);
    std::ifstream v1_runtime(group / "cpu.cfs_quota_us");
    std::ifstream v1_period(group / "cpu.cfs_period_us");
    if (v1_runtime >> runtime && v1_period >> period) limit(runtime, period);
  }
  return quota;
}

}  // namespace lockstep
