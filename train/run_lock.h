#pragma once

#include "core/base/file_descriptor.h"
#include "train/report/run_directory.h"

namespace lockstep::train {

/// Keeps other processes from training in a run directory at the same time. The system lets go of
/// it when the process ends, however it ends; the file run.lock stays and means nothing by itself.
class RunLock {
 public:
  /// Throws ConfigError naming host and process of the run that is there already; DataError if the
  /// file cannot be written.
  explicit RunLock(const RunDirectory& directory);

 private:
  FileDescriptor file_;
};

}  // namespace lockstep::train
