#include "compile/native/toolchain.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "core/base/check.h"
#include "core/base/owned_fd.h"

namespace lockstep::compiler {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOutput = size_t{1} << 16;  ///< bytes that are kept of what a program prints

/// posix_spawn's settings: a process group of its own, default signals, and output to a pipe.
class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// Reads the output until all writers are gone, and returns why that was given up, if it was.
std::string read_output(int pipe, std::string& output, const BuildLimits& limits) {
  const auto end = std::chrono::steady_clock::now() + limits.time;
  char buffer[4096];
  for (;;) {
    pollfd waited{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waited, 1, 20);
    if (limits.stops()) return "it was not needed any more";
    if (std::chrono::steady_clock::now() > end) {
      return "it did not end within " +
             std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limits.time).count()) +
             " s";
    }
    if (ready <= 0) continue;
    const ssize_t count = ::read(pipe, buffer, sizeof(buffer));
    if (count == 0 || (count < 0 && errno != EINTR)) return {};
    if (count > 0 && output.size() < kMostOutput) output.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

ToolResult run_tool(const std::vector<std::string>& command, const BuildLimits& limits) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return {.status = -1, .output = {}, .problem = std::strerror(errno)};
  }
  const OwnedFd reading(ends[0]);
  OwnedFd writing(ends[1]);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const SpawnSettings settings(writing.get());
  pid_t child = 0;
  const int refused = ::posix_spawnp(&child, arguments[0], settings.actions(),
                                     settings.attributes(), arguments.data(), environ);
  if (refused != 0) return {.status = -1, .output = {}, .problem = std::strerror(refused)};
  writing.reset();
  // What the program computes goes first.
  constexpr int kLowPriority = 10;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(child), kLowPriority);
  ToolResult result;
  result.problem = read_output(reading.get(), result.output, limits);
  if (!result.problem.empty()) ::kill(-child, SIGKILL);
  int status = 0;
  pid_t waited = 0;
  while ((waited = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  result.status = waited == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (result.problem.empty() && result.status == -1) {
    result.problem = waited == child
                         ? std::string("it was ended by signal ") + std::to_string(WTERMSIG(status))
                         : "its exit status was lost";
  }
  return result;
}

std::string chosen_compiler() {
  const char* const chosen = std::getenv("CXX");
  return chosen != nullptr ? chosen : "";
}

std::optional<Toolchain> find_toolchain(const BuildLimits& limits, const std::string& chosen) {
  std::vector<std::string> programs = {"c++", "g++", "clang++"};
  if (!chosen.empty()) programs.insert(programs.begin(), chosen);
  for (const std::string& program : programs) {
    ToolResult result = run_tool({program, "--version"}, limits);
    if (result.status == 0) return Toolchain{program, std::move(result.output)};
  }
  return std::nullopt;
}

void compile_library(const Toolchain& toolchain, const fs::path& source,
                     const std::vector<std::string>& flags, const fs::path& library,
                     const BuildLimits& limits) {
  std::vector<std::string> command = {toolchain.program, "-shared", "-fPIC", "-std=c++20",
                                      "-fvisibility=hidden"};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"-o", library.string(), source.string()});
  const ToolResult result = run_tool(command, limits);
  LS_CHECK(result.problem.empty(), Error, "[compile] {} could not compile {}: {}.",
           toolchain.program, source.string(), result.problem);
  LS_CHECK(result.status == 0, Error, "[compile] {} ended with status {}:\n{}", toolchain.program,
           result.status, result.output);
}

}  // namespace lockstep::compiler
