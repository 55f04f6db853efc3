#pragma once

#include <time.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files/file_descriptor.h"
#include "train/report/run_directory.h"

namespace lockstep::train {

/// Keeps other processes from training in a run directory at the same time (flock on run.lock, and
/// on the directory itself, where that can be locked: removing run.lock then admits nobody). The
/// system releases the locks when the process ends, however it ends; the file itself remains, and
/// alone does not block a later run. It says whether the holder ended by itself, or was killed.
class RunLock {
 public:
  /// Throws ConfigError with host and pid of the holder if the directory is locked; DataError if
  /// the file cannot be written.
  explicit RunLock(const RunDirectory& directory);
  /// Notes in run.lock that the holder ended by itself, unless `leave_no_trace` was called.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  /// Gives run.lock the contents and times it had before, for a run that changes no file.
  void leave_no_trace();

  /// Host and pid of this process, as run.lock has them.
  const std::string& owner() const { return owner_; }
  /// Takes the lock of the process `owner`, which was killed or crashed. Returns null where the
  /// directory is locked, where that process ended by itself, and where another one has taken the
  /// lock since, even if it has ended, too: of several that ask, one gets it. Throws DataError.
  static std::unique_ptr<RunLock> inherit(const RunDirectory& directory, const std::string& owner);

  /// Whether run.lock says that the last holder ended by itself. Throws DataError.
  static bool has_ended(const RunDirectory& directory);
  /// Host and pid of the process that trains in the directory, if there is one.
  static std::optional<std::string> holder(const RunDirectory& directory);

 private:
  /// Opens the files and reads run.lock.
  explicit RunLock(const RunDirectory& directory, int flags);
  /// Returns whether it is locked now.
  bool try_to_lock();
  void read_file();

  FileDescriptor folder_;
  FileDescriptor file_;
  std::string owner_;
  std::vector<std::byte> before_;
  struct timespec times_before_[2];
  bool is_noted_ = false;  ///< run.lock names this process, and is to say how it ended
};

}  // namespace lockstep::train
