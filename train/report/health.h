#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep::train {

/// Result of a machine check.
enum class Health {
  kOk,
  kWarn,  ///< training works, but slower or not for long
  kFail,  ///< training would fail
};
/// "ok", "warn", "fail"
const char* name(Health health);

/// One line of the report of `lockstep doctor`.
struct Check {
  std::string subject;
  Health health = Health::kOk;
  std::string found;
  std::string advice;  ///< what to do; empty if kOk
};

struct HealthOptions {
  /// Folder that runs are written to; it need not exist yet.
  std::filesystem::path run_folder = "runs";
  /// Threads that kernels would use.
  int threads = 1;
  /// Root of /proc and /sys; tests replace it.
  std::filesystem::path root = "/";
};

/// Checks processor, memory, limits, disk and kernel settings, read from /proc and /sys. Leaves out
/// what the system does not report.
std::vector<Check> examine_machine(const HealthOptions& options);

/// The soft limit of this process called `name` in /proc/self/limits ("Max open files"); INT64_MAX
/// for "unlimited", -1 if the system does not report it.
int64_t process_limit(const std::string& name, const std::filesystem::path& root = "/");

/// Versions of the shared libraries loaded into this process, taken from their file names:
/// "protobuf" -> "32.0.12". Leaves out the C and C++ run-time libraries and unversioned files.
std::map<std::string, std::string> loaded_libraries(const std::filesystem::path& root = "/");

}  // namespace lockstep::train
