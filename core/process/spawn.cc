#include "core/process/spawn.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace lockstep {

namespace {

/// What posix_spawn is to do besides.
class SpawnSettings {
 public:
  explicit SpawnSettings(const SpawnStreams& streams) {
    ::posix_spawn_file_actions_init(&actions_);
    const auto stream = [this](int from, int number) {
      if (from >= 0) ::posix_spawn_file_actions_adddup2(&actions_, from, number);
    };
    stream(streams.input, STDIN_FILENO);
    stream(streams.output, STDOUT_FILENO);
    stream(streams.error, STDERR_FILENO);
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

}  // namespace

Spawned spawn(const std::vector<std::string>& command, const SpawnStreams& streams,
              const ProcessEnvironment& environment) {
  const SpawnSettings settings(streams);
  Spawned result;
  result.error =
      ::posix_spawn(&result.process, environment.file_of(command[0]).c_str(), settings.actions(),
                    settings.attributes(), pointers_to(command).data(),
                    pointers_to(environment.variables()).data());
  return result;
}

std::string ending_of(int wait_status) {
  if (!WIFSIGNALED(wait_status)) {
    return fmt::format("it has ended with status {}", WEXITSTATUS(wait_status));
  }
  const int signal = WTERMSIG(wait_status);
  return fmt::format("it was ended by signal {} ({})", signal, ::strsignal(signal));
}

}  // namespace lockstep
