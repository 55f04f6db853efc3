#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep::train {

/// How something bears on training here.
enum class Health {
  kOk,
  kWarn,  ///< training works, but slower or not for long
  kFail,  ///< training would fail
};
/// "ok", "warn", "fail"
const char* name(Health health);

/// One thing that was looked at.
struct Check {
  std::string subject;
  Health health = Health::kOk;
  std::string found;
  std::string advice;  ///< what to do; empty when all is well
};

struct HealthOptions {
  /// Where runs are written; it need not exist yet.
  std::filesystem::path run_folder = "runs";
  /// Threads that kernels would use.
  int threads = 1;
  /// Replaced by tests.
  std::filesystem::path root = "/";
};

/// Looks at processor, memory, limits, disk and kernel settings, read from /proc and /sys. A system
/// that does not tell something gets no line for it.
std::vector<Check> examine_machine(const HealthOptions& options);

/// The soft limit of this process called `name` in /proc/self/limits ("Max open files"); the
/// greatest number for "unlimited", -1 where the system does not tell.
int64_t process_limit(const std::string& name, const std::filesystem::path& root = "/");

/// Shared libraries loaded into this process whose file names carry a version, "protobuf" to
/// "32.0.12"; the C and C++ run-time libraries excepted.
std::map<std::string, std::string> loaded_libraries(const std::filesystem::path& root = "/");

}  // namespace lockstep::train
