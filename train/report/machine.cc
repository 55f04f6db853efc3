#include "train/report/machine.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/base/control_groups.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

/// Returns the rest of the first line of `file` that starts with `key`, without the separators
/// after the key.
std::string value_after(const fs::path& file, std::string_view key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    const size_t begin = line.find_first_not_of(" \t:=\"", key.size());
    return begin == line.npos ? "" : line.substr(begin, line.find_last_not_of('"') + 1 - begin);
  }
  return "";
}

std::optional<double> first_number(const fs::path& file) {
  std::ifstream stream(file);
  double number = 0;
  if (stream >> number) return number;
  return std::nullopt;  // missing, or "max"
}

}  // namespace

std::string cpu_model(const fs::path& root) {
  return value_after(root / "proc/cpuinfo", "model name");
}

std::vector<std::string> isa_features(const fs::path& root) {
  constexpr std::array<std::string_view, 16> kInteresting = {
      "sse4_2",   "avx",      "f16c",        "fma",      "avx2",        "bmi2",
      "avx512f",  "avx512bw", "avx512dq",    "avx512vl", "avx512_vnni", "avx512_bf16",
      "avx_vnni", "amx_tile", "avx512_fp16", "amx_bf16"};
  std::vector<std::string> features;
  std::istringstream flags(value_after(root / "proc/cpuinfo", "flags"));
  for (std::string flag; flags >> flag;) {
    if (std::ranges::find(kInteresting, flag) != kInteresting.end()) features.push_back(flag);
  }
  return features;
}

int cores_allowed(const fs::path& root) {
  cpu_set_t mask;
  const int affinity = ::sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
  return std::max(1, static_cast<int>(std::min<double>(affinity, std::ceil(core_quota(root)))));
}

std::optional<double> core_wait_seconds(const fs::path& root) {
  std::ifstream file(root / "proc/thread-self/schedstat");
  uint64_t ran_ns = 0, waited_ns = 0, slices = 0;
  if (!(file >> ran_ns >> waited_ns >> slices)) return std::nullopt;
  return static_cast<double>(waited_ns) / 1e9;
}

uint64_t memory_allowed(const fs::path& root) {
  uint64_t kibibytes = 0;
  std::istringstream(value_after(root / "proc/meminfo", "MemTotal")) >> kibibytes;
  uint64_t allowed = kibibytes * 1024;
  for (const fs::path& group : control_groups(root, "memory")) {
    for (const char* file : {"memory.max", "memory.limit_in_bytes"}) {
      const auto limit = first_number(group / file);
      if (limit && *limit >= 0 && *limit < static_cast<double>(allowed)) {
        allowed = static_cast<uint64_t>(*limit);
      }
    }
  }
  return allowed;
}

std::string operating_system(const fs::path& root) {
  return value_after(root / "etc/os-release", "PRETTY_NAME");
}

}  // namespace lockstep::train
