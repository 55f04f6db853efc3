#include "dist/transport/process_watch.h"

#include <sys/syscall.h>

namespace lockstep::dist {

void ProcessWatch::add(int pid) {
  // By syscall: the C library of Debian 12 has no pidfd_open.
  handles_.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // poll ignores entries with a negative descriptor.
  polls_.push_back({handles_.back().get(), POLLIN, 0});
}

void ProcessWatch::look(FunctionRef<void(size_t)> ended) {
  if (poll(polls_.data(), polls_.size(), 0) <= 0) return;
  for (size_t i = 0; i < polls_.size(); ++i) {
    if (polls_[i].fd < 0 || (polls_[i].revents & POLLIN) == 0) continue;
    polls_[i].fd = -1;
    handles_[i].reset();
    ended(i);
  }
}

}  // namespace lockstep::dist
