#include "launcher/launch/launch_process.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep::launcher {
namespace {

/// Reads what is available; returns false at the end of the stream.
bool read_some(int fd, OutputSplitter& splitter) {
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    splitter.feed({bytes.data(), static_cast<size_t>(got)});
    if (static_cast<size_t>(got) < bytes.size()) return true;
  }
}

std::map<std::string, std::string> joined(std::map<std::string, std::string> own,
                                          const std::map<std::string, std::string>& all) {
  own.insert(all.begin(), all.end());
  return own;
}

}  // namespace

LaunchProcess::LaunchProcess(const LaunchPlan::Process& process,
                             const std::map<std::string, std::string>& environment, OutputTags tags,
                             const Care& care, const std::function<void(const OutputLine&)>& take)
    : rank_(process.rank),
      out_(tags, false, take, process.rank),
      err_(tags, true, take, process.rank),
      child_(
          process.command, joined(process.environment, environment), process.working_folder,
          [&](const ChildProcess& child) {
            warden_.emplace(child, care.patience, care.session_folders, care.own_session);
          },
          // As with mpirun, the first rank gets what is typed.
          process.rank > 0 ? ChildProcess::Input::kNone : ChildProcess::Input::kOurs),
      pid_(child_.pid()) {}

std::array<int, 3> LaunchProcess::descriptors() const {
  return {child_.ended_fd(), child_.output_fd(), child_.errors_fd()};
}

void LaunchProcess::read_output() {
  if (child_.output_fd() >= 0 && !read_some(child_.output_fd(), out_)) child_.close_output();
  if (child_.errors_fd() >= 0 && !read_some(child_.errors_fd(), err_)) child_.close_errors();
}

void LaunchProcess::finish_output() {
  out_.finish();
  err_.finish();
}

bool LaunchProcess::take_end() {
  if (status_) return false;
  pollfd ended{child_.ended_fd(), POLLIN, 0};
  if (::poll(&ended, 1, 0) != 1) return false;
  status_ = child_.wait();
  warden_.reset();
  return true;
}

}  // namespace lockstep::launcher
