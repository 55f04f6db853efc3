#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file_descriptor.h"
#include "launcher/launch/launch_failure.h"
#include "launcher/launch/launch_options.h"
#include "launcher/launch/output_splitter.h"

namespace lockstep::launcher {

/// Where the lines of a job go: to the terminal with the prefixes that were asked for, to a file
/// for each rank and stream, and into memory, which keeps the last of each rank. The launcher's own
/// lines go to standard error, but for those about a failure, which are kept.
class LaunchOutput {
 public:
  /// With `append` files go on, after a restart. Throws DataError when the folder cannot be made.
  LaunchOutput(const LaunchOptions& options, bool append);

  /// Throws DataError when a file cannot be written.
  void take(const OutputLine& line);
  /// The launcher's output has ended.
  void finish();

  /// What the launcher said of the first rank that failed. Without a text it has not said how.
  const std::optional<LaunchFailure>& failure() const { return failure_; }
  /// The launcher has said that all ranks run; those of Open MPI 5 and Slurm never do.
  bool ranks_run() const { return ranks_run_; }
  /// The last lines of a rank, both streams, oldest first.
  std::vector<std::string> tail(int rank) const;
  /// The rank that wrote "...Error: ..." to its standard error first, but for PeerLostError, which
  /// is about another; -1 if none did.
  int first_complaint() const { return first_complaint_; }

 private:
  using Files = std::map<std::pair<int, bool>, std::unique_ptr<FileDescriptor>>;

  void take_launcher_line(const std::string& text);
  void end_block();
  void note(const LaunchFailure& failure);
  void show(const OutputLine& line) const;
  void write_file(const OutputLine& line);

  LaunchOptions options_;
  bool append_;
  Files files_;
  std::map<int, std::deque<std::string>> tails_;
  std::optional<std::string> block_;  ///< a message between lines of dashes
  std::optional<LaunchFailure> failure_;
  bool ranks_run_ = false;
  int first_complaint_ = -1;
};

}  // namespace lockstep::launcher
