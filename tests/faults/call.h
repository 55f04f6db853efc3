#pragma once

#include <sys/types.h>

#include <cerrno>
#include <string>

/// What becomes of a call that changes files; the settings are described in file_faults.cc.
namespace lockstep::faults {

enum class Action { kNone, kKill, kKillAfter, kHalf, kShort, kFail, kFullDisk };

/// The first two need space on the disk.
enum class Kind { kWrite, kNewName, kOther };

/// What is done beside a call leaves errno alone.
class ErrnoGuard {
 public:
  ErrnoGuard() = default;
  ~ErrnoGuard() { errno = before_; }
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int before_ = errno;
};

/// The path an open file was opened under; empty if it is not counted, and then nothing is
/// allocated, because signal handlers write to the terminal.
std::string path_of(int fd);

/// The name that `path` stands for, from the open folder `folder` on (AT_FDCWD as in openat); where
/// it is a link, the link's own. Empty if it is not counted.
std::string path_at(int folder, const char* path);

/// Counts one call and decides what becomes of it: the end of the process, or one of the below.
/// Thread-safe.
class Call {
 public:
  /// `path` is empty for calls that are not counted. Sets errno if the call is to fail.
  Call(const char* name, const std::string& path, Kind kind);

  bool fails() const { return action_ == Action::kFail || action_ == Action::kFullDisk; }
  /// How many of a write's bytes are to be written.
  size_t share(size_t bytes) const {
    return action_ == Action::kHalf || action_ == Action::kShort ? bytes / 2 : bytes;
  }
  /// After the call: the end, if that was asked for.
  void finish() const;

 private:
  Action action_ = Action::kNone;
};

/// Makes the call `function()`, or gives -1 instead.
template <class Function>
auto make(const Call& call, const Function& function) -> decltype(function()) {
  if (call.fails()) return -1;
  const auto result = function();
  call.finish();
  return result;
}

}  // namespace lockstep::faults
