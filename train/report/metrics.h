#pragma once

#include <cstdint>
#include <filesystem>

#include "core/base/files/file_descriptor.h"
#include "core/base/json_line.h"

namespace lockstep::train {

/// Appends records to a metrics file, one JSON object per line. Each record is passed to the kernel
/// whole before `write` returns, so a reader that follows the file sees it at once and a killed
/// process loses none. Throws DataError with the path and the system's reason on failure.
class MetricsWriter {
 public:
  /// Opens `path` for appending; creates it if it is missing. Truncates an incomplete last line,
  /// which a killed writer left.
  explicit MetricsWriter(const std::filesystem::path& path);

  void write(const JsonLine& record);
  /// Waits until everything written is on stable storage.
  void sync() { file_.sync(); }
  /// Closes the file. Throws DataError for write errors that the system reports only now, as
  /// network file systems may.
  void close() { file_.close(); }

 private:
  FileDescriptor file_;
};

/// Removes from the end of a metrics file the records of steps after `step`, which a process that
/// was killed made and training from a checkpoint of `step` makes again: the file keeps one line a
/// step. Does nothing without such a file. Throws DataError.
void drop_steps_after(const std::filesystem::path& path, int64_t step);

}  // namespace lockstep::train
