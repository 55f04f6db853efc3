#pragma once

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "launcher/launch/child_process.h"
#include "tests/core/base/comes_true.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {

/// Whether the process exists and is not a zombie.
inline bool runs(pid_t pid) {
  const std::string text = file_content(fmt::format("/proc/{}/stat", pid));
  const size_t state = text.rfind(") ");
  return state != text.npos && text[state + 2] != 'Z' && text[state + 2] != 'X';
}

inline bool any_runs(const std::vector<pid_t>& processes) {
  return std::ranges::any_of(processes, runs);
}

/// A running `lockstep launch` and its output.
class Launched {
 public:
  /// `before`: shell commands that run first.
  Launched(const std::string& line, const std::filesystem::path& folder,
           const std::map<std::string, std::string>& variables = {}, const std::string& before = "")
      : process_({"/bin/sh", "-c",
                  fmt::format("{}exec '{}/lockstep' launch {} {}", before, LOCKSTEP_BIN_DIR,
                              ::geteuid() == 0 ? "--allow-run-as-root" : "", line)},
                 variables, folder.string()) {}
  /// Starts launch through a command that ends in an exec of it.
  static Launched of(const std::vector<std::string>& command, const std::filesystem::path& folder) {
    return Launched(command, folder);
  }

  pid_t pid() const { return process_.pid(); }
  void signal(int signal) const { process_.signal(signal); }

  /// Reads until standard error contains `text`. Returns false after a minute.
  bool says(const std::string& text) {
    return comes_true([&] {
      if (result_.errors.find(text) == std::string::npos) read_some();
      return result_.errors.find(text) != std::string::npos;
    });
  }
  /// Reads all output and waits for the end. Kills the process group after two minutes.
  Result end() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (process_.output_fd() >= 0 || process_.errors_fd() >= 0) {
      read_some();
      if (std::chrono::steady_clock::now() > deadline) process_.signal_group(SIGKILL);
    }
    const int status = process_.wait();
    result_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result_;
  }

 private:
  Launched(const std::vector<std::string>& command, const std::filesystem::path& folder)
      : process_(command, {}, folder.string()) {}

  void read_some() {
    std::array<pollfd, 2> polled = {
        {{process_.output_fd(), POLLIN, 0}, {process_.errors_fd(), POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), 100);
    if (!read(process_.output_fd(), result_.output)) process_.close_output();
    if (!read(process_.errors_fd(), result_.errors)) process_.close_errors();
  }
  static bool read(int fd, std::string& text) {
    if (fd < 0) return true;
    std::array<char, 4096> bytes;
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got > 0) text.append(bytes.data(), static_cast<size_t>(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }

  Result result_;
  ChildProcess process_;
};

}  // namespace lockstep::launcher
