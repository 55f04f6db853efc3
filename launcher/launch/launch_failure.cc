#include "launcher/launch/launch_failure.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/base/check.h"
#include "core/base/parse_number.h"

namespace lockstep::launcher {
namespace {

constexpr const char* kImproper = "ended before the job was over, without MPI_Finalize";

/// Joins the lines of a message, which are wrapped at places that depend on the names in it.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const char plain = c == '\n' || c == '\t' || c == '\r' ? ' ' : c;
    if (plain != ' ' || (!line.empty() && line.back() != ' ')) line += plain;
  }
  return line;
}

const char* after(const std::string& text, const char* words) {
  const size_t at = text.find(words);
  return at == text.npos ? nullptr : text.c_str() + at;
}

LaunchFailure by_signal(int rank, std::string host, int signal) {
  return {rank, std::move(host), signal, 0, fmt::format("was ended by {}", signal_text(signal))};
}

LaunchFailure by_status(int rank, std::string host, int status) {
  return {rank, std::move(host), 0, status, fmt::format("ended with exit status {}", status)};
}

std::optional<LaunchFailure> read_srun(const std::string& line) {
  const char* at = after(line, "srun: error: ");
  if (at == nullptr) return std::nullopt;
  std::array<char, 256> host{};
  int rank = 0;
  int read = 0;
  if (std::sscanf(at, "srun: error: %255[^:]: task%*[s] %d%n", host.data(), &rank, &read) != 2 &&
      std::sscanf(at, "srun: error: %255[^:]: task %d%n", host.data(), &rank, &read) != 2) {
    return std::nullopt;
  }
  int status = 0;
  if (const char* exited = after(line, "Exited with exit code ");
      exited != nullptr && std::sscanf(exited, "Exited with exit code %d", &status) == 1) {
    return by_status(rank, host.data(), status);
  }
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTERM}) {
    if (after(line, ::strsignal(signal)) != nullptr) return by_signal(rank, host.data(), signal);
  }
  return std::nullopt;
}

}  // namespace

std::optional<StateLine> read_state(const std::string& line) {
  // "[host:pid] [[job,0],0] ACTIVATE PROC [[job,1],RANK] STATE NAME AT file:line"
  if (!line.starts_with('[')) return std::nullopt;
  StateLine state;
  int rank = 0;
  std::array<char, 32> name{};
  if (const char* at = after(line, "] ACTIVATE PROC [[")) {
    if (std::sscanf(at, "] ACTIVATE PROC [[%*d,%*d],%d] STATE %31[^/]", &rank, name.data()) != 2) {
      return state;
    }
    const std::string_view text(name.data());
    if (text.starts_with("EXITED WITH NON-ZERO STATUS") || text.starts_with("ABORTED BY SIGNAL")) {
      state.failure = LaunchFailure{rank, "", 0, 0, ""};
    } else if (text.starts_with("CALLED ABORT")) {
      state.failure = LaunchFailure{rank, "", 0, 0, "called MPI_Abort"};
    } else if (text.starts_with("TERMINATED WITHOUT SYNC")) {
      state.failure = LaunchFailure{rank, "", 0, 0, kImproper};
    } else if (text.starts_with("SYNC REGISTERED")) {
      state.registered = rank;
    } else if (text.starts_with("NORMALLY TERMINATED")) {
      state.ended = rank;
    }
    return state;
  }
  if (const char* at = after(line, "] ACTIVATE JOB ")) {
    state.running = std::strstr(at, " STATE RUNNING AT ") != nullptr;
    state.all_registered = std::strstr(at, " STATE SYNC REGISTERED AT ") != nullptr;
    return state;
  }
  if (after(line, "] state:") != nullptr) return state;
  return std::nullopt;
}

std::optional<LaunchFailure> read_slow_rank(const std::string& line, int status) {
  const char* const at = after(line, "SlowRankError: [train] rank ");
  std::array<char, 256> host{};
  int rank = 0;
  if (at == nullptr ||
      std::sscanf(at, "SlowRankError: [train] rank %d on %255s works", &rank, host.data()) != 2) {
    return std::nullopt;
  }
  LaunchFailure found = by_status(rank, host.data(), status);
  found.text = "is too slow";
  found.slow = true;
  return found;
}

std::string signal_text(int signal) {
  const char* hint = "";
  if (signal == SIGKILL) hint = "; often the system was out of memory (`dmesg` tells)";
  return fmt::format("signal {} ({}){}", signal, ::strsignal(signal), hint);
}

std::optional<LaunchFailure> read_failure(const std::string& message) {
  const std::string line = on_one_line(message);
  std::array<char, 256> host{};
  int rank = 0;
  int number = 0;
  if (const char* at = after(line, "process rank ")) {
    if (std::sscanf(at, "process rank %d with PID %*d on node %255s exited on signal %d", &rank,
                    host.data(), &number) == 3) {
      return by_signal(rank, host.data(), number);
    }
    if (after(line, "exiting improperly") != nullptr &&
        std::sscanf(at, "process rank %d with PID %*d on node %255s", &rank, host.data()) == 2) {
      return LaunchFailure{rank, host.data(), 0, 0, kImproper};
    }
  }
  if (const char* at = after(line, "Process name: ")) {
    const std::string_view name =
        std::string_view(at).substr(0, std::string_view(at).find(" Exit"));
    const size_t comma = name.rfind(',');
    const size_t end = name.find(']', comma == name.npos ? 0 : comma);
    const char* code = after(line, "Exit code:");
    if (comma != name.npos && end != name.npos && code != nullptr &&
        std::sscanf(code, "Exit code: %d", &number) == 1) {
      const auto found = parse_number<int>(name.substr(comma + 1, end - comma - 1));
      if (found) return by_status(*found, "", number);
    }
  }
  if (const char* at = after(line, "MPI_ABORT was invoked on rank ")) {
    const char* code = after(line, "errorcode ");
    if (std::sscanf(at, "MPI_ABORT was invoked on rank %d", &rank) == 1) {
      if (code != nullptr) (void)std::sscanf(code, "errorcode %d", &number);
      return LaunchFailure{rank, "", 0, number, fmt::format("called MPI_Abort with {}", number)};
    }
  }
  if (after(line, "unable to find the specified executable") != nullptr ||
      after(line, "could not access or execute an executable") != nullptr) {
    std::array<char, 1024> program{};
    if (const char* at = after(line, "Executable: ")) {
      (void)std::sscanf(at, "Executable: %1023s", program.data());
    }
    if (const char* at = after(line, "Node: ")) (void)std::sscanf(at, "Node: %255s", host.data());
    return LaunchFailure{-1, host.data(), 0, 0,
                         fmt::format("has no program {} that can be started", program.data())};
  }
  if (after(line, "lost communication with a remote daemon") != nullptr) {
    if (const char* at = after(line, "Remote daemon: ")) {
      (void)std::sscanf(at, "Remote daemon: %*s on node %255s", host.data());
    }
    return LaunchFailure{-1, host.data(), 0, 0, "is lost: mpirun no longer reaches it", true};
  }
  if (after(line, "process returned a non-zero exit code") != nullptr ||
      after(line, "processes returned a non-zero exit code") != nullptr) {
    return LaunchFailure{};
  }
  return read_srun(line);
}

std::string to_text(const LaunchFailure& failure) {
  if (failure.rank < 0) {
    return failure.host.empty() ? failure.text : fmt::format("{} {}", failure.host, failure.text);
  }
  // A launcher that crashed may have reported that the rank failed, but not how.
  return fmt::format("rank {}{}{} {}", failure.rank, failure.host.empty() ? "" : " on ",
                     failure.host, failure.text.empty() ? "failed" : failure.text);
}

}  // namespace lockstep::launcher
