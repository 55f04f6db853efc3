#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/owned_fd.h"

namespace lockstep::launcher {

/// A program that was started in a process group of its own, with its output in pipes. It gets
/// SIGTERM when the thread that started it ends, however that ends. Not thread-safe.
class ChildProcess {
 public:
  /// `environment` is laid over our own. Throws ConfigError with the system's reason if it cannot
  /// be started.
  ChildProcess(const std::vector<std::string>& command,
               const std::map<std::string, std::string>& environment,
               const std::string& working_folder);
  /// Kills the group if the child has not been waited for, and waits.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Readable once the child has ended; -1 after `wait`.
  int ended_fd() const { return handle_.get(); }
  /// Do not block; -1 once closed.
  int output_fd() const { return output_.get(); }
  int errors_fd() const { return errors_.get(); }
  void close_output() { output_.reset(); }
  void close_errors() { errors_.reset(); }

  /// To the child alone, or to its whole group. Nothing happens once it was waited for.
  void signal(int signal) const;
  void signal_group(int signal) const;
  /// Whether the child has a handler for `signal`.
  bool catches(int signal) const;
  /// What waitpid tells; blocks until the child has ended.
  int wait();

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  OwnedFd handle_;
  OwnedFd output_;
  OwnedFd errors_;
};

/// All processes that descend from `ancestor`, nearest first. Those that have ended are not among
/// them.
std::vector<pid_t> descendants(pid_t ancestor);

/// The file that a process runs; empty if it has gone or is another user's.
std::string program_of(pid_t process);

/// While it lives, processes whose parent ended become children of this process, so that
/// `descendants` finds them.
class OrphanKeeper {
 public:
  OrphanKeeper();
  ~OrphanKeeper();
  OrphanKeeper(const OrphanKeeper&) = delete;
  OrphanKeeper& operator=(const OrphanKeeper&) = delete;

  /// Ends all that descend from this process with SIGKILL and waits for them, 2 s at most. Returns
  /// how many there were. For when no child is waited for elsewhere.
  int kill_descendants();

 private:
  int before_ = 0;
};

}  // namespace lockstep::launcher
