#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tests/train/rank_runs.h"
#include "tests/train/tiny_run.h"
#include "train/bisect/recorded_run.h"
#include "train/report/environment.h"
#include "train/run/training_run.h"

namespace lockstep::train {

/// Trains as `config` says in `folder`/`name`, and reads what the run left.
inline RecordedRun recorded(const TemporaryDirectory& folder, const std::string& name,
                            const config::RunConfig& config) {
  {
    TrainingRun run(config, RunDirectory::create_at(folder / name, RunDirectory::Existing::kRefuse),
                    environment_json({.command_line = {},
                                      .version = LOCKSTEP_VERSION,
                                      .device = parse_device(config.device()),
                                      .libraries = {}}));
    std::FILE* const nowhere = std::fopen("/dev/null", "w");
    (void)run.run({.terminal = nowhere});
    std::fclose(nowhere);
  }
  return read_run(folder / name);
}

/// Records a run likewise, on `ranks` ranks; `hosts` has the number of each one's host.
inline RecordedRun recorded_on(int ranks, const TemporaryDirectory& folder, const std::string& name,
                               const config::RunConfig& config,
                               const std::vector<int>& hosts = {}) {
  rethrow_first(dist::run_thread_ranks(
      ranks,
      [&](dist::ProcessGroup& group) {
        const StreamGuard own_stream(get_stream_from_pool(parse_device(config.device())));
        if (group.rank() != 0) {
          follow_training(config, group, {});
          return;
        }
        TrainingRun run(config,
                        RunDirectory::create_at(folder / name, RunDirectory::Existing::kContinue),
                        "{}", nullptr, &group);
        std::FILE* const nowhere = std::fopen("/dev/null", "w");
        (void)run.run({.terminal = nowhere});
        std::fclose(nowhere);
      },
      {}, hosts));
  return read_run(folder / name);
}

/// What every run of these tests has: 6 steps of 4 micro-batches, checkpoints after 2 and 4. A bit
/// of a mask may make a loss that is not finite.
inline const std::string kSixSteps =
    "train { steps: 6 micro_batch_size: 2 sample_bytes: 0 non_finite: SKIP } "
    "checkpoint { every_steps: 2 keep_last: 9 } ";

inline config::RunConfig six_steps(const TemporaryDirectory& folder, const std::string& more = "") {
  return tiny_run(folder, kSixSteps + more);
}

inline std::string flipped(const std::string& flip) { return "inject { flip: \"" + flip + "\" }"; }

/// Six steps of four leaves, with the bits of any number of ranks.
inline config::RunConfig bitwise_steps(const TemporaryDirectory& folder,
                                       const std::string& more = "") {
  return tiny_run(
      folder,
      "reproducibility: BITWISE "
      "train { steps: 6 micro_batch_size: 2 leaves: 4 sample_bytes: 0 non_finite: SKIP } "
      "checkpoint { every_steps: 2 keep_last: 9 } " +
          more);
}

}  // namespace lockstep::train
