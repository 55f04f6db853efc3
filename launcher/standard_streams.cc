#include "launcher/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/base/check.h"

namespace lockstep::launcher {

namespace {

constexpr int kWriteSignals[] = {SIGPIPE, SIGXFSZ};

void handle_write_signals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  for (const int signal : kWriteSignals) (void)::sigaction(signal, &action, nullptr);
}

}  // namespace

Error lost_output(int error) {
  return Error(
      fmt::format("[output] standard output cannot be written: {}. Without it this command has no "
                  "result: expected a reader that reads to the end, or a file on a disk with room.",
                  error == 0 ? "an earlier write failed" : std::strerror(error)));
}

void open_missing_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is `fd`, since those below it are open.
    (void)::open("/dev/null", O_RDONLY);
  }
}

void ignore_write_signals() { handle_write_signals(SIG_IGN); }

void restore_write_signals() { handle_write_signals(SIG_DFL); }

void write_output(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) throw lost_output(errno);
}

void require_output_written() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) != 0) throw lost_output(errno);
  if (failed_before) throw lost_output(0);
}

}  // namespace lockstep::launcher
