#include "dist/transport/event_queues.h"

#include <filesystem>
#include <string>
#include <system_error>

namespace lockstep::dist {

std::set<int> open_event_queues() {
  namespace fs = std::filesystem;
  std::set<int> queues;
  std::error_code error;
  for (fs::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;  // set for descriptors that are closed already, such as this listing's
    const fs::path target = fs::read_symlink(at->path(), gone);
    if (!gone && target == "anon_inode:[eventpoll]") {
      queues.insert(std::stoi(at->path().filename().string()));
    }
  }
  return queues;
}

}  // namespace lockstep::dist
