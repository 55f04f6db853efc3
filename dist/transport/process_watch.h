#pragma once

#include <poll.h>

#include <cstddef>
#include <vector>

#include "core/base/function_ref.h"
#include "core/base/owned_fd.h"

namespace lockstep::dist {

/// Notices when processes of this machine end. A process number that is in use again is not taken
/// for the process that it belonged to.
class ProcessWatch {
 public:
  /// Watches one more, which has to be alive; they are numbered from 0. Where the system cannot
  /// watch processes (Linux before 5.3), nothing will be noticed of it.
  void add(int pid);
  /// Calls `ended` with the number of each that has ended since the last call. Never blocks.
  void look(FunctionRef<void(size_t)> ended);

 private:
  std::vector<OwnedFd> handles_;
  std::vector<pollfd> polls_;
};

}  // namespace lockstep::dist
