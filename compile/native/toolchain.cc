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

/// What execve takes: null behind the last.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& each : texts) pointers.push_back(const_cast<char*>(each.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

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

ProcessEnvironment::ProcessEnvironment() {
  for (char** each = environ; *each != nullptr; ++each) variables_.emplace_back(*each);
}

std::string ProcessEnvironment::value(const std::string& name) const {
  const std::string begin = name + "=";
  for (const std::string& each : variables_) {
    if (each.starts_with(begin)) return each.substr(begin.size());
  }
  return "";
}

std::string ProcessEnvironment::file_of(const std::string& program) const {
  if (program.find('/') != program.npos) return program;
  const std::string folders = value("PATH");
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const fs::path file = fs::path(folders.substr(begin, end - begin)) / program;
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0) {
      return file.is_absolute() ? file.string() : "./" + file.string();
    }
    begin = end + 1;
  }
  return program;
}

ToolResult run_tool(const std::vector<std::string>& command, const BuildLimits& limits,
                    const ProcessEnvironment& environment) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return {.status = -1, .output = {}, .problem = std::strerror(errno)};
  }
  const OwnedFd reading(ends[0]);
  OwnedFd writing(ends[1]);
  const std::vector<char*> arguments = pointers_to(command);
  const std::vector<char*> variables = pointers_to(environment.variables());
  const SpawnSettings settings(writing.get());
  pid_t child = 0;
  const int refused =
      ::posix_spawn(&child, environment.file_of(command[0]).c_str(), settings.actions(),
                    settings.attributes(), arguments.data(), variables.data());
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

std::optional<Toolchain> find_toolchain(const BuildLimits& limits,
                                        const ProcessEnvironment& environment) {
  std::vector<std::string> programs = {"c++", "g++", "clang++"};
  if (const std::string chosen = environment.value("CXX"); !chosen.empty()) {
    programs.insert(programs.begin(), chosen);
  }
  for (const std::string& program : programs) {
    ToolResult result = run_tool({program, "--version"}, limits, environment);
    if (result.status == 0) return Toolchain{program, std::move(result.output)};
  }
  return std::nullopt;
}

void compile_library(const Toolchain& toolchain, const fs::path& source,
                     const std::vector<std::string>& flags, const fs::path& library,
                     const BuildLimits& limits, const ProcessEnvironment& environment) {
  std::vector<std::string> command = {toolchain.program, "-shared", "-fPIC", "-std=c++20",
                                      "-fvisibility=hidden"};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"-o", library.string(), source.string()});
  const ToolResult result = run_tool(command, limits, environment);
  LS_CHECK(result.problem.empty(), Error, "[compile] {} could not compile {}: {}.",
           toolchain.program, source.string(), result.problem);
  LS_CHECK(result.status == 0, Error, "[compile] {} ended with status {}:\n{}", toolchain.program,
           result.status, result.output);
}

}  // namespace lockstep::compiler
