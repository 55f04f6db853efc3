#include "train/report/health.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>

#include "train/report/machine.h"
#include "train/report/step_line.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;

std::string first_line_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

Check processor(const HealthOptions& options) {
  Check check{"processor", Health::kOk, cpu_model(options.root), ""};
  const std::vector<std::string> features = isa_features(options.root);
  if (!features.empty()) check.found += fmt::format(" ({})", fmt::join(features, " "));
#ifdef __x86_64__
  // The baseline that the library is compiled for (x86-64-v3).
  for (const char* needed : {"avx2", "fma", "bmi2", "f16c"}) {
    if (features.empty() || std::ranges::find(features, needed) != features.end()) continue;
    check.health = Health::kFail;
    check.advice =
        fmt::format("It lacks {}, which this build uses. Use an x86-64-v3 processor.", needed);
  }
#endif
  return check;
}

Check cores(const HealthOptions& options) {
  const int allowed = cores_allowed(options.root);
  Check check{"cores", Health::kOk,
              fmt::format("{} allowed, {} kernel thread{}", allowed, options.threads,
                          options.threads == 1 ? "" : "s"),
              ""};
  if (options.threads > allowed) {
    check.health = Health::kWarn;
    check.advice =
        fmt::format("More threads than cores wait for each other: set threads: {}.", allowed);
  }
  return check;
}

Check memory(const HealthOptions& options) {
  const uint64_t allowed = memory_allowed(options.root);
  Check check{"memory", Health::kOk, format_bytes(allowed) + " allowed", ""};
  if (allowed < 64 * kMiB) {
    check.health = Health::kFail;
    check.advice = "Too little for any model. Raise the control group's limit.";
  } else if (allowed < kGiB) {
    check.health = Health::kWarn;
    check.advice = "Only small models fit.";
  }
  return check;
}

struct LimitRule {
  const char* limit;  ///< as in /proc/self/limits
  const char* subject;
  int64_t fail_below;
  int64_t warn_below;
  bool is_count;
  const char* advice;
};

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
constexpr std::array<LimitRule, 5> kLimitRules = {{
    {"Max open files", "open files", 32, 1024, true,
     "Data shards and ranks need many: ulimit -n 4096."},
    {"Max stack size", "stack", 128 << 10, 1 << 20, false, "ulimit -s 8192."},
    {"Max locked memory", "locked memory", 0, 0, false, ""},
    {"Max address space", "address space", 512 << 20, kUnlimited, false,
     "Large mappings are refused beyond it: ulimit -v unlimited."},
    {"Max file size", "file size", 1 << 20, kUnlimited, false,
     "Larger checkpoints cannot be written: ulimit -f unlimited."},
}};

void add_limits(const HealthOptions& options, std::vector<Check>& checks) {
  for (const LimitRule& rule : kLimitRules) {
    const int64_t limit = process_limit(rule.limit, options.root);
    if (limit < 0) continue;
    Check check{rule.subject, Health::kOk, "unlimited", ""};
    if (limit != kUnlimited) {
      check.found =
          rule.is_count ? fmt::format("{}", limit) : format_bytes(static_cast<uint64_t>(limit));
    }
    if (limit < rule.warn_below) {
      check.health = limit < rule.fail_below ? Health::kFail : Health::kWarn;
      check.advice = rule.advice;
    }
    checks.push_back(std::move(check));
  }
}

std::optional<struct statvfs> file_system(const fs::path& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

/// The folder itself or its nearest existing ancestor, below which it would be created.
fs::path existing_folder(const fs::path& folder) {
  std::error_code failed;
  fs::path path = fs::absolute(folder, failed).lexically_normal();
  while (!fs::exists(path, failed) && path.has_relative_path()) path = path.parent_path();
  return path;
}

Check run_folder(const HealthOptions& options) {
  const fs::path folder = existing_folder(options.run_folder);
  Check check{"run folder", Health::kFail, options.run_folder.string(), ""};
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) {
    check.advice = fmt::format("{} is no folder. Name another with --run-dir.", folder.string());
    return check;
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    check.advice = fmt::format("{} cannot be written to: {}.", folder.string(),
                               std::generic_category().message(errno));
    return check;
  }
  const auto status = file_system(folder);
  if (!status) {
    check.advice = std::generic_category().message(errno) + ".";
    return check;
  }
  const uint64_t free = uint64_t{status->f_bavail} * status->f_frsize;
  check.found += ", " + format_bytes(free) + " free";
  check.health = free < 16 * kMiB ? Health::kFail : free < kGiB ? Health::kWarn : Health::kOk;
  if (check.health != Health::kOk) check.advice = "Checkpoints may not fit. Make room.";
  return check;
}

Check shared_memory(const HealthOptions& options) {
  Check check{"/dev/shm", Health::kWarn, "missing", "MPI between ranks of one machine needs it."};
  const auto status = file_system(options.root / "dev/shm");
  if (!status) return check;
  const uint64_t free = uint64_t{status->f_bavail} * status->f_frsize;
  check.found = format_bytes(free) + " free";
  check.health = free < 64 * kMiB ? Health::kWarn : Health::kOk;
  check.advice = check.health == Health::kOk
                     ? ""
                     : "MPI between ranks of one machine needs more: mount it larger (--shm-size).";
  return check;
}

void add_huge_pages(const HealthOptions& options, std::vector<Check>& checks) {
  const std::string line =
      first_line_of(options.root / "sys/kernel/mm/transparent_hugepage/enabled");
  const size_t begin = line.find('[');  // "always [madvise] never"
  const size_t end = line.find(']');
  if (begin == line.npos || end == line.npos) return;
  Check check{"huge pages", Health::kOk, line.substr(begin + 1, end - begin - 1), ""};
  if (check.found == "never") {
    check.health = Health::kWarn;
    check.advice = "Large tensors are slower to touch: set transparent_hugepage to madvise.";
  }
  checks.push_back(std::move(check));
}

/// "libprotobuf.so.32.0.12" is protobuf, 32.0.12; "libfoo-1.2.so" is foo, 1.2.
std::optional<std::pair<std::string, std::string>> library_version(std::string file) {
  if (!file.starts_with("lib")) return std::nullopt;
  file = file.substr(3);
  const size_t end = file.find(".so");
  if (end == file.npos) return std::nullopt;
  const std::string stem = file.substr(0, end);
  if (file.size() > end + 4) return std::pair(stem, file.substr(end + 4));
  const size_t dash = stem.rfind('-');
  if (dash == stem.npos || dash + 1 == stem.size() || stem[dash + 1] < '0' ||
      stem[dash + 1] > '9') {
    return std::nullopt;
  }
  return std::pair(stem.substr(0, dash), stem.substr(dash + 1));
}

}  // namespace

const char* name(Health health) {
  constexpr std::array<const char*, 3> kNames = {"ok", "warn", "fail"};
  return kNames[static_cast<size_t>(health)];
}

std::vector<Check> examine_machine(const HealthOptions& options) {
  std::vector<Check> checks;
  const std::string system = operating_system(options.root);
  if (!system.empty()) checks.push_back({"system", Health::kOk, system, ""});
  checks.push_back(processor(options));
  checks.push_back(cores(options));
  checks.push_back(memory(options));
  add_limits(options, checks);
  checks.push_back(run_folder(options));
  checks.push_back(shared_memory(options));
  add_huge_pages(options, checks);
  return checks;
}

int64_t process_limit(const std::string& name, const fs::path& root) {
  std::ifstream stream(root / "proc/self/limits");
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(name + " ")) continue;
    std::istringstream rest(line.substr(name.size()));
    int64_t limit = 0;
    return rest >> limit ? limit : kUnlimited;
  }
  return -1;
}

std::map<std::string, std::string> loaded_libraries(const fs::path& root) {
  constexpr std::array<std::string_view, 7> kRunTime = {"c",  "m",       "stdc++", "gcc_s",
                                                        "dl", "pthread", "rt"};
  std::map<std::string, std::string> libraries;
  std::ifstream stream(root / "proc/self/maps");
  for (std::string line; std::getline(stream, line);) {
    const size_t path = line.find('/');
    if (path == line.npos) continue;
    const auto library = library_version(fs::path(line.substr(path)).filename().string());
    if (library && std::ranges::find(kRunTime, library->first) == kRunTime.end()) {
      libraries.insert(*library);
    }
  }
  return libraries;
}

}  // namespace lockstep::train
