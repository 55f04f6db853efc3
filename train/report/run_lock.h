#pragma once

#include <time.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files/file_descriptor.h"
#include "train/report/run_directory.h"

namespace lockstep::train {

/// Keeps other processes from training in a run directory at the same time (flock on run.lock, and
/// on the directory itself, where that can be locked: removing run.lock then admits nobody). The
/// system releases the locks when the process ends, however it ends; the file itself remains, and
/// alone does not block a later run.
class RunLock {
 public:
  /// Throws ConfigError with host and pid of the holder if the directory is locked; DataError if
  /// the file cannot be written.
  explicit RunLock(const RunDirectory& directory);
  /// Gives run.lock the contents and times it had before, for a run that changes no file.
  void leave_no_trace();

  /// Host and pid of the process that trains in the directory, if there is one.
  static std::optional<std::string> holder(const RunDirectory& directory);

 private:
  FileDescriptor folder_;
  FileDescriptor file_;
  std::vector<std::byte> before_;
  struct timespec times_before_[2];
};

}  // namespace lockstep::train
