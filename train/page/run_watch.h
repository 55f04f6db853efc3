#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "train/page/metrics_reader.h"
#include "train/page/run_record.h"
#include "train/report/progress.h"
#include "train/report/run_directory.h"

namespace lockstep::train {

/// Follows a run from outside, as a reader of its directory: before it exists, while it trains,
/// over its restarts and after its end. Reads only what the metrics have gained since the last
/// look. Not thread-safe.
class RunWatch {
 public:
  /// `path` need not exist yet. Throws DataError where it is no folder.
  explicit RunWatch(std::filesystem::path path);

  /// Reads what is new. A file that was cut, as a restart does, or replaced is read again.
  void look();
  /// The run has made all its steps and has ended.
  bool finished() const;
  /// The run as text for a terminal: where it stands, its loss curve, its speeds, its ranks. Lines
  /// end with '\n', are as wide as `style` says, and no more than `lines` of them.
  std::string text(const ProgressStyle& style, int lines = 40) const;

 private:
  void begin_again();
  /// Whether the file still has the text before offset_ that was read.
  bool goes_on(std::uintmax_t bytes) const;
  void read_new();
  /// Reads the whole lines of a text that begins at offset_.
  void read_lines(const std::string& text);
  /// The run's directory, once it holds more than the lock of a run that begins.
  std::optional<RunDirectory> directory() const;
  std::string state_line() const;
  std::string problem_lines() const;
  std::string numbers() const;
  std::string ranks_line() const;

  std::filesystem::path path_;
  std::unique_ptr<RunRecord> record_;
  std::unique_ptr<MetricsReader> reader_;
  uint64_t offset_ = 0;  ///< of the first byte that was not read
  int64_t lines_ = 0;
  std::string last_line_;      ///< before offset_, to see that the file is the same
  bool in_long_line_ = false;  ///< offset_ is in a line that is too long to be a step's
  int64_t total_steps_ = 0;
};

}  // namespace lockstep::train
