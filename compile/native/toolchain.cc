#include "compile/native/toolchain.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "core/base/check.h"
#include "core/base/owned_fd.h"
#include "core/process/spawn.h"

namespace lockstep::compiler {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOutput = size_t{1} << 16;  ///< bytes that are kept of what a program prints

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

ToolResult run_tool(const std::vector<std::string>& command, const BuildLimits& limits,
                    const ProcessEnvironment& environment) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return {.status = -1, .output = {}, .problem = std::strerror(errno)};
  }
  const OwnedFd reading(ends[0]);
  OwnedFd writing(ends[1]);
  const OwnedFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Spawned spawned =
      spawn(command, {.input = nothing.get(), .output = writing.get(), .error = writing.get()},
            environment);
  if (spawned.error != 0) {
    return {.status = -1, .output = {}, .problem = std::strerror(spawned.error)};
  }
  const pid_t child = spawned.process;
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
    result.problem = waited == child ? ending_of(status) : "its exit status was lost";
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
  // clang has no such flag, and refuses it.
  const bool is_clang = toolchain.version.find("clang") != std::string::npos;
  std::ranges::copy_if(flags, std::back_inserter(command), [&](const std::string& flag) {
    return !is_clang || flag != "-fno-thread-jumps";
  });
  command.insert(command.end(), {"-o", library.string(), source.string()});
  const ToolResult result = run_tool(command, limits, environment);
  LS_CHECK(result.problem.empty(), Error, "[compile] {} could not compile {}: {}.",
           toolchain.program, source.string(), result.problem);
  LS_CHECK(result.status == 0, Error, "[compile] {} ended with status {}:\n{}", toolchain.program,
           result.status, result.output);
}

}  // namespace lockstep::compiler
