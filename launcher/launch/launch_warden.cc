#include "launcher/launch/launch_warden.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>

#include "core/base/check.h"
#include "launcher/launch/launch_leftovers.h"

namespace lockstep::launcher {
namespace {

using Clock = std::chrono::steady_clock;

bool is_readable(int fd, int wait_ms) {
  pollfd polled{fd, POLLIN, 0};
  return ::poll(&polled, 1, wait_ms) > 0;
}

/// Replaces the standard streams by /dev/null: they belong to the parent.
void redirect_streams_to_null() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (null < 0 || ::dup2(null, fd) < 0) (void)::close(fd);
  }
}

void discard(int& fd) {
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got > 0) continue;
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) fd = -1;
    return;
  }
}

void kill_with_descendants(pid_t launcher) {
  // Repeats, since a process may have forked in the meantime. The launcher is killed last: its
  // descendants cannot be found without it.
  std::vector<pid_t> known = descendants(launcher);
  for (int i = 0; i < 3; ++i) {
    for (const pid_t pid : known) (void)::kill(pid, SIGKILL);
    known = descendants(launcher);
  }
  (void)::kill(launcher, SIGKILL);
}

[[noreturn]] void watch(pid_t launcher, int launcher_fd, int parent_fd, int output, int errors,
                        std::chrono::seconds patience, const std::vector<std::string>& folders,
                        const std::filesystem::path& session) {
  (void)::setpgid(0, 0);  // so that signals from the terminal do not reach the warden
  redirect_streams_to_null();
  while (!is_readable(parent_fd, -1)) {
  }
  const Clock::time_point deadline = Clock::now() + patience;
  while (Clock::now() < deadline && !is_readable(launcher_fd, 0)) {
    std::array<pollfd, 3> polled = {
        {{launcher_fd, POLLIN, 0}, {output, POLLIN, 0}, {errors, POLLIN, 0}}};
    (void)::poll(polled.data(), polled.size(), 100);
    if (output >= 0) discard(output);
    if (errors >= 0) discard(errors);
  }
  // While the pidfd shows that the launcher runs, its pid cannot have been reused.
  if (!is_readable(launcher_fd, 0)) {
    kill_with_descendants(launcher);
    (void)is_readable(launcher_fd, 1000);
  }
  remove_leftovers(launcher, folders);
  std::error_code ignored;
  if (!session.empty()) std::filesystem::remove_all(session, ignored);
  ::_exit(0);
}

}  // namespace

LaunchWarden::LaunchWarden(const ChildProcess& launcher, std::chrono::seconds patience,
                           const std::vector<std::string>& session_folders,
                           const std::filesystem::path& own_session) {
  // Opened before the fork, so that this process's pid cannot have been reused.
  const OwnedFd parent(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  LS_CHECK(parent, Error, "[launch] no handle of this process: {}. Linux 5.3 has it.",
           std::strerror(errno));
  pid_ = ::fork();
  if (pid_ == 0) {
    watch(launcher.pid(), launcher.ended_fd(), parent.get(), launcher.output_fd(),
          launcher.errors_fd(), patience, session_folders, own_session);
  }
  LS_CHECK(pid_ > 0, OutOfMemoryError, "[launch] no new process: {}.", std::strerror(errno));
}

LaunchWarden::~LaunchWarden() {
  (void)::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace lockstep::launcher
