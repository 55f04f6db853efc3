#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "train/report/metrics_history.h"
#include "train/report/run_directory.h"
#include "train/run/checkpoint_state.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// What a run directory says of a run that is to be computed again.
struct RecordedRun {
  RunDirectory directory;
  std::string name;  ///< the path as the user wrote it
  std::string config_text;
  std::vector<MetricsRecord> steps;
  int ranks = 1;                                  ///< of its last start
  std::vector<int> hosts;                         ///< of these, as LastStart has them
  bool always_so = true;                          ///< LastStart::is_as_before
  std::string version;                            ///< of Lockstep; empty: not known
  std::map<std::string, std::string> arithmetic;  ///< by name of the fact; empty: not known

  config::RunConfig config() const;
};

/// Reads a run's files. Throws NewerVersionError for a run of a later version of Lockstep, which is
/// looked at first, DataError for a folder without a run or steps, and SourceError for its config.
RecordedRun read_run(const std::filesystem::path& path);

/// How the programs and the machine of `run` computed otherwise than this process: `kernels:
/// expected "avx512", got "avx2"`. Empty if bits can be the same.
std::string difference_to_here(const RecordedRun& run);

/// The fields in which two runs that are to be compared call by call must agree, and do not, each
/// "train.batch_size 8 -> 16".
std::vector<std::string> incomparable_fields(const RecordedRun& a, const RecordedRun& b);
/// The other fields that change numbers, such as the learning rate, and differ.
std::vector<std::string> changed_fields(const RecordedRun& a, const RecordedRun& b);

}  // namespace lockstep::train
