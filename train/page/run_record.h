#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/page/config_values.h"
#include "train/page/step_series.h"
#include "train/report/rank_times.h"

namespace lockstep::train {

/// Something that happened to a run.
struct RunEvent {
  int64_t step = 0;  ///< after which it happened
  std::string
      kind;  ///< "checkpoint", "resume", "restart", "rollback", "left out", "warning", "deal"
  std::string text;  ///< more about it; may be empty
};

/// A text that the model made during training.
struct RunSample {
  int64_t step = 0;
  std::string text;
};

/// Communication of a median step, of overlap.json.
struct RecordedOverlap {
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<std::vector<std::string>> buckets;  ///< texts of kOverlapHead's columns
  std::string picture;                            ///< overlap.svg; empty: none
};
inline constexpr const char* kOverlapHead[] = {"Bucket",      "Parameters",   "Bytes",
                                               "Ready, ms",   "Launched, ms", "Done, ms",
                                               "Exposed, ms", "Cause"};

struct RunRecordOptions {
  size_t points = size_t{1} << 14;        ///< of each quantity, as StepSeries takes it
  size_t samples = 200;                   ///< kept at most, spread over the run
  size_t sample_bytes = size_t{1} << 20;  ///< of all of them
  size_t events = 2000;
};

/// What a run's directory says about it, for a reader: read as far as it can be. A directory of a
/// run that goes on, was cut short or is of another version gives what is there, and `missing` says
/// what is not. Texts are the files' own and not escaped.
struct RunRecord {
  std::string name;
  std::filesystem::path path;
  /// By member of metrics.jsonl, those of which chart_kinds (train/page/curves.h) has a curve, and
  /// "wall_s", the seconds over which they are drawn.
  std::map<std::string, StepSeries> series;
  int64_t steps = 0;           ///< of the last line
  double tokens_per_step = 0;  ///< 0: not known
  int ranks = 1;               ///< of the last start
  std::vector<RunEvent> events;
  int64_t events_left_out = 0;
  std::vector<RunSample> samples;
  int64_t samples_left_out = 0;
  std::vector<ConfigValue> config;
  /// environment.json, nested members with their path: {"libraries.zlib", "1.2.13"}.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> command_line;
  std::string working_directory;
  std::map<std::string, double> goodput;  ///< numbers of goodput.json
  std::string ended;                      ///< "finished", "stopped"; empty: not told
  RecordedOverlap overlap;
  std::optional<RankComparison> rank_times;  ///< the newest
  /// How many leaves of a step each rank computes, since they were dealt by speed; else empty.
  std::vector<int64_t> rank_leaves;
  std::vector<std::string> missing;  ///< a sentence each

  const StepSeries* find(const std::string& member) const;
};

/// Reads a run. `path` is a run directory, or a metrics file for its curves alone. Throws DataError
/// if nothing of a run is there.
RunRecord read_run(const std::filesystem::path& path, const RunRecordOptions& options = {});

}  // namespace lockstep::train
