#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/launch/child_process.h"
#include "launcher/launch/launch_plan.h"
#include "launcher/launch/launch_warden.h"
#include "launcher/launch/output_splitter.h"

namespace lockstep::launcher {

/// A process of a job that launch itself starts, a launcher or a rank: the child, its warden, and
/// its output as lines. Not thread-safe.
class LaunchProcess {
 public:
  /// What its warden needs besides (launch_warden.h).
  struct Care {
    std::chrono::seconds patience{1};
    std::vector<std::string> session_folders;
    std::filesystem::path own_session;
  };

  /// Starts `process`, with `environment` added to its own. `take` gets each line of its output.
  /// Throws ConfigError if it cannot be started.
  LaunchProcess(const LaunchPlan::Process& process,
                const std::map<std::string, std::string>& environment, OutputTags tags,
                const Care& care, const std::function<void(const OutputLine&)>& take);
  LaunchProcess(const LaunchProcess&) = delete;
  LaunchProcess& operator=(const LaunchProcess&) = delete;

  int rank() const { return rank_; }  ///< -1: a launcher
  pid_t pid() const { return pid_; }  ///< also after its end
  pid_t warden() const { return warden_ ? warden_->pid() : -1; }
  const ChildProcess& child() const { return child_; }

  /// Descriptors for poll: the end, stdout, stderr; -1 for those that are through.
  std::array<int, 3> descriptors() const;
  /// Passes on the output that has come.
  void read_output();
  bool output_is_open() const { return child_.output_fd() >= 0 || child_.errors_fd() >= 0; }
  /// Passes on incomplete last lines.
  void finish_output();

  /// Takes note of the end if it has come, and lets the warden go. Returns whether it just did.
  bool take_end();
  /// waitpid's status; nothing while it runs.
  std::optional<int> status() const { return status_; }

 private:
  int rank_;
  OutputSplitter out_;
  OutputSplitter err_;
  std::optional<LaunchWarden> warden_;
  ChildProcess child_;  // ends before its warden
  pid_t pid_;
  std::optional<int> status_;
};

}  // namespace lockstep::launcher
