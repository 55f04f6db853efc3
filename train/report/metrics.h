#pragma once

#include <filesystem>

#include "core/base/file_descriptor.h"
#include "core/base/json_line.h"

namespace lockstep::train {

/// Appends records to a metrics file, one JSON object per line. Each record is handed to the system
/// whole before `write` returns, so a reader that follows the file sees it at once and a killed
/// process loses none. Failures throw DataError naming the path and the system's reason.
class MetricsWriter {
 public:
  /// Opens `path` for appending; creates it if it is missing. A last line without an end, which a
  /// killed writer left, is cut off.
  explicit MetricsWriter(const std::filesystem::path& path);

  void write(const JsonLine& record);
  /// Returns once everything written is on stable storage.
  void sync() { file_.sync(); }
  /// Reports what the system held back until closing (network file systems do).
  void close() { file_.close(); }

 private:
  FileDescriptor file_;
};

}  // namespace lockstep::train
