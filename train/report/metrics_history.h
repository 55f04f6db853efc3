#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace lockstep::train {

/// What metrics.jsonl says about one step, as the same doubles that were written. NaN and
/// infinities are values like any other; what a line does not hold is empty.
struct MetricsRecord {
  int64_t step = 0;
  std::optional<double> loss;
  std::optional<double> grad_norm;
  std::optional<double> val_loss;
};

/// The records of a run in the order they were written. `path` is a run directory or a metrics
/// file. Lines without a step are skipped, and so is a last line without an end: its writer was
/// stopped in it. A run that was resumed from a checkpoint may hold some steps twice.
/// A line {"rollback_to":n} takes the records of later steps back. Throws DataError naming file and
/// line if the file cannot be read, a line is no JSON object, or no step is left.
std::vector<MetricsRecord> read_metrics(const std::filesystem::path& path);

}  // namespace lockstep::train
