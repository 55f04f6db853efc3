#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/page/run_record.h"

namespace lockstep::train {

/// Reads the lines of a metrics.jsonl into the series and events of a run record. A line that it
/// cannot read is counted and left out. Not thread-safe.
class MetricsReader {
 public:
  /// `record` must outlive this object.
  MetricsReader(RunRecord& record, const RunRecordOptions& options)
      : record_(record), options_(options) {}

  void read(std::string_view line, int64_t number);
  /// What was wrong with the lines so far, a sentence each.
  std::vector<std::string> problems() const;
  /// Adds that to the record's `missing`.
  void finish();

 private:
  void add_event(int64_t step, const char* kind, std::string text);
  void go_back(int64_t step);

  RunRecord& record_;
  RunRecordOptions options_;
  int64_t unreadable_ = 0;
  int64_t first_unreadable_ = 0;
  int64_t not_finite_ = 0;
  int64_t first_not_finite_ = 0;
  double starts_ = 0;
  double restarts_ = 0;
  double checkpoint_seconds_ = 0;
  double step_seconds_ = 0;
};

/// Whether a run can have made so many steps: a browser's numbers tell no others apart.
inline bool is_step(int64_t step) { return step >= 0 && step <= int64_t{1} << 53; }

/// Adds an event unless the record has as many as it keeps; then it is counted.
void add_event(RunRecord& record, const RunRecordOptions& options, RunEvent event);

}  // namespace lockstep::train
