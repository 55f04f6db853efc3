#pragma once

#include "core/base/file_descriptor.h"
#include "train/report/run_directory.h"

namespace lockstep::train {

/// Keeps other processes from training in a run directory at the same time (flock on run.lock). The
/// system releases the lock when the process ends, however it ends; the file itself remains, and
/// alone does not block a later run.
class RunLock {
 public:
  /// Throws ConfigError with host and pid of the holder if the directory is locked; DataError if
  /// the file cannot be written.
  explicit RunLock(const RunDirectory& directory);

 private:
  FileDescriptor file_;
};

}  // namespace lockstep::train
