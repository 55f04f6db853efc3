#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/owned_fd.h"
#include "launcher/launch/child_process.h"

namespace lockstep::launcher {

/// A watchdog process that ends a launcher and its descendants if this process ends first, for
/// example by SIGKILL. Until then it sleeps. The launcher gets SIGTERM at that moment
/// (ChildProcess); the warden drains its output, so that it can shut down normally, after
/// `patience` kills the processes that are left, and removes the files that a killed launcher
/// leaves in `session_folders`, and the folder `own_session` if it is not empty.
class LaunchWarden {
 public:
  /// Throws Error with the system's reason.
  LaunchWarden(const ChildProcess& launcher, std::chrono::seconds patience,
               const std::vector<std::string>& session_folders,
               const std::filesystem::path& own_session);
  /// Ends the warden; call after the launcher has ended.
  ~LaunchWarden();
  LaunchWarden(const LaunchWarden&) = delete;
  LaunchWarden& operator=(const LaunchWarden&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace lockstep::launcher
