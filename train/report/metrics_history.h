#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace lockstep::train {

/// One step's line of metrics.jsonl, with exactly the doubles that were written, including NaN and
/// infinities. Members that the line lacks are empty.
struct MetricsRecord {
  int64_t step = 0;
  std::optional<double> loss;
  std::optional<double> grad_norm;
  std::optional<double> val_loss;
};

/// Reads the records of a run in the order they were written. `path` is a run directory or a
/// metrics file. Lines without a step are skipped, and so is an incomplete last line, whose writer
/// was interrupted. A run that was resumed from a checkpoint may hold some steps twice. A line
/// {"rollback_to":n} removes the records of steps after n. Throws DataError naming file and line if
/// the file cannot be read, a line is no JSON object, or no step is left.
std::vector<MetricsRecord> read_metrics(const std::filesystem::path& path);

/// As read_metrics, for a file that may hold no step yet.
std::vector<MetricsRecord> read_records(const std::filesystem::path& file);

/// The step of the last whole line of a metrics file that has one, or that training went back to; 0
/// if none has, or the file cannot be read. Reads the file's end alone.
int64_t last_step(const std::filesystem::path& file);

}  // namespace lockstep::train
