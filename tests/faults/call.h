#pragma once

#include <sys/types.h>

#include <cerrno>
#include <string>

/// Faults of calls that change files; file_faults.cc describes the settings.
namespace lockstep::faults {

enum class Action { kNone, kKill, kKillAfter, kHalf, kShort, kFail, kFullDisk };

/// kWrite and kNewName need space on the disk.
enum class Kind { kWrite, kNewName, kOther };

/// Restores errno at the end of its scope.
class ErrnoGuard {
 public:
  ErrnoGuard() = default;
  ~ErrnoGuard() { errno = before_; }
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int before_ = errno;
};

/// The path under which an open file was opened, or "" if it is not counted. In that case it does
/// not allocate, because signal handlers write to the terminal.
std::string path_of(int fd);

/// The absolute name of `path` relative to the open folder `folder` (AT_FDCWD as in openat). Does
/// not follow `path` itself if it is a link. Returns "" if it is not counted.
std::string path_at(int folder, const char* path);

/// Counts one call and decides its outcome: ends the process, or one of the outcomes below.
/// Thread-safe.
class Call {
 public:
  /// `path` is empty for calls that are not counted. Sets errno if the call is to fail.
  Call(const char* name, const std::string& path, Kind kind);

  bool fails() const { return action_ == Action::kFail || action_ == Action::kFullDisk; }
  /// Number of a write's bytes to write.
  size_t share(size_t bytes) const {
    return action_ == Action::kHalf || action_ == Action::kShort ? bytes / 2 : bytes;
  }
  /// Ends the process after the call, if the action is kill_after or half.
  void finish() const;

 private:
  Action action_ = Action::kNone;
};

/// Whether calls that only read are counted (FILE_FAULTS_READS), and this is none that the library
/// itself makes while it looks for a path.
bool counts_reads();

/// Makes the call `function()`, or returns -1 if it is to fail.
template <class Function>
auto make(const Call& call, const Function& function) -> decltype(function()) {
  if (call.fails()) return -1;
  const auto result = function();
  call.finish();
  return result;
}

/// Appends a change that was made to FILE_FAULTS_RECORD, if that is set and the path is counted:
/// the name of the operation, its paths (of a rename the old one first), offset and bytes.
void record(const char* operation, const std::string& path, const std::string& other = "",
            off_t offset = 0, const void* bytes = nullptr, size_t size = 0);

}  // namespace lockstep::faults
