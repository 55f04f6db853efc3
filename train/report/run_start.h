#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "dist/group/process_group.h"
#include "train/report/last_start.h"
#include "train/report/run_directory.h"

namespace lockstep::train {

/// One start of a run of several ranks, as its leader keeps it. A run directory sees several
/// starts: `starts.jsonl` has a line for each at its begin, and another one if it ended as it
/// should, so that `lockstep trace` need not take an old failure for the run's last end. Without a
/// group all functions do nothing.
class RunStart {
 public:
  /// For the leader, once it holds the run's lock; `follow` is for the other ranks. Collective.
  /// From now on all ranks write their flight records to the directory after a failure, and not
  /// before: a start that is refused leaves nothing there. `group` may be null.
  RunStart(const RunDirectory& directory, dist::ProcessGroup* group);
  static void follow(dist::ProcessGroup& group);

  /// Records that training begins. Throws DataError.
  void begin();
  /// Records that it ended: kFinished or kStopped. An error of writing is ignored, as the run has
  /// kept everything.
  void end(std::string_view how) noexcept;

 private:
  std::filesystem::path file_;
  std::string id_;  ///< empty: no group
  int ranks_;
  std::vector<int> hosts_;
};

}  // namespace lockstep::train
