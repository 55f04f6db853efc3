#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/owned_fd.h"

namespace lockstep::launcher {

/// A child process in its own process group, with its output in pipes. It gets SIGTERM when the
/// thread that started it ends, for whatever reason (PR_SET_PDEATHSIG). Not thread-safe.
class ChildProcess {
 public:
  /// What the child reads from its standard input: ours, or nothing.
  enum class Input { kOurs, kNone };

  /// Starts `command`. `environment` is added to this process's environment. `before_start` is
  /// called when the child exists; its program starts after that, and not at all if this process
  /// ends before. Throws ConfigError with the system's reason if it cannot be started.
  ChildProcess(const std::vector<std::string>& command,
               const std::map<std::string, std::string>& environment,
               const std::string& working_folder,
               const std::function<void(const ChildProcess&)>& before_start = {},
               Input input = Input::kOurs);
  /// If `wait` was not called, kills the process group and waits for the child.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// pidfd of the child: readable once it has ended; -1 after `wait`.
  int ended_fd() const { return handle_.get(); }
  /// Non-blocking read ends of the child's stdout and stderr; -1 once closed.
  int output_fd() const { return output_.get(); }
  int errors_fd() const { return errors_.get(); }
  void close_output() { output_.reset(); }
  void close_errors() { errors_.reset(); }

  /// Sends a signal to the child only, or to its whole group. Does nothing after `wait`.
  void signal(int signal) const;
  void signal_group(int signal) const;
  /// Whether the child has a handler for `signal`.
  bool catches(int signal) const;
  /// Blocks until the child has ended and returns waitpid's status.
  int wait();

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  OwnedFd handle_;
  OwnedFd output_;
  OwnedFd errors_;
};

/// Returns all running descendants of `ancestor`, nearest first.
std::vector<pid_t> descendants(pid_t ancestor);

/// Path of the executable of a process; empty if it has ended or belongs to another user.
std::string program_of(pid_t process);
/// Whether a process is stopped, as by SIGSTOP.
bool is_stopped(pid_t process);

/// Makes this process a child subreaper while the object exists: descendants whose parent ended
/// become its children, so that `descendants` finds them.
class OrphanKeeper {
 public:
  OrphanKeeper();
  ~OrphanKeeper();
  OrphanKeeper(const OrphanKeeper&) = delete;
  OrphanKeeper& operator=(const OrphanKeeper&) = delete;

  /// Kills all descendants of this process with SIGKILL and waits for them, 2 s at most. Returns
  /// their number. Must not run while other code waits for children.
  int kill_descendants();

 private:
  int before_ = 0;
};

}  // namespace lockstep::launcher
