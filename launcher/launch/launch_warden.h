#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/base/owned_fd.h"
#include "launcher/launch/child_process.h"

namespace lockstep::launcher {

/// A process that ends a launcher and all below it when this process ends without having done so,
/// as by SIGKILL. Until then it sleeps. The launcher gets SIGTERM at that moment (ChildProcess);
/// the warden reads its output, so that it can end in its own way, kills what is left after some
/// seconds, and removes what a killed one leaves in `session_folders`.
class LaunchWarden {
 public:
  /// Throws Error with the system's reason.
  LaunchWarden(const ChildProcess& launcher, std::chrono::seconds patience,
               const std::vector<std::string>& session_folders);
  /// The launcher has ended: so does the warden.
  ~LaunchWarden();
  LaunchWarden(const LaunchWarden&) = delete;
  LaunchWarden& operator=(const LaunchWarden&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace lockstep::launcher
