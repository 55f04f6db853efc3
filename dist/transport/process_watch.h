#pragma once

#include <poll.h>

#include <cstddef>
#include <vector>

#include "core/base/function_ref.h"
#include "core/base/owned_fd.h"

namespace lockstep::dist {

/// Detects the end of processes on this machine. Uses pidfds, so a reused process id is not
/// mistaken for the old process.
class ProcessWatch {
 public:
  /// Adds a process, which must be alive; they are numbered from 0. On systems without pidfd_open
  /// (Linux before 5.3) its end will not be detected.
  void add(int pid);
  /// Calls `ended` with the number of each process that has ended since the last call. Never
  /// blocks.
  void look(FunctionRef<void(size_t)> ended);

 private:
  std::vector<OwnedFd> handles_;
  std::vector<pollfd> polls_;
};

}  // namespace lockstep::dist
