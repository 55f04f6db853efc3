#include "launcher/launch/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/base/check.h"
#include "core/base/parse_number.h"
#include "launcher/standard_streams.h"

namespace lockstep::launcher {
namespace {

struct Pipe {
  OwnedFd read;
  OwnedFd write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  LS_CHECK(::pipe2(ends.data(), O_CLOEXEC) == 0, Error, "[launch] no pipe: {}.",
           std::strerror(errno));
  return {OwnedFd(ends[0]), OwnedFd(ends[1])};
}

void set_non_blocking(const OwnedFd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  LS_CHECK(flags >= 0 && ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) == 0, Error,
           "[launch] a pipe cannot be made non-blocking: {}.", std::strerror(errno));
}

std::vector<std::string> merged(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) entries.push_back(text);
  }
  for (const auto& [name, value] : changes) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Arguments of run_child, which runs between fork and exec and must neither allocate nor lock.
struct Start {
  char* const* arguments;
  char* const* environment;
  const char* folder;  ///< working folder; null: the current one
  pid_t parent;
  int input;  ///< descriptor for standard input; -1: ours
  int output;
  int errors;
  int go;       ///< pipe that gives a byte when the program may start
  int problem;  ///< pipe that receives errno on failure
};

/// Waits for `bytes` bytes from a pipe, written at once; returns whether they came.
bool read_from(int pipe, void* into, size_t bytes) {
  ssize_t got = 0;
  do {
    got = ::read(pipe, into, bytes);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(bytes);
}

[[noreturn]] void run_child(const Start& start) {
  sigset_t none;
  char go = 0;
  ::sigemptyset(&none);
  restore_write_signals();
  const bool ready = ::setpgid(0, 0) == 0 && ::prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 &&
                     (start.input < 0 || ::dup2(start.input, STDIN_FILENO) >= 0) &&
                     ::dup2(start.output, STDOUT_FILENO) >= 0 &&
                     ::dup2(start.errors, STDERR_FILENO) >= 0 &&
                     ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0 &&
                     (start.folder == nullptr || ::chdir(start.folder) == 0);
  // The parent may have ended before prctl, in which case no signal would come.
  if (ready && ::getppid() == start.parent && read_from(start.go, &go, 1)) {
    ::execve(start.arguments[0], start.arguments, start.environment);
  }
  const int problem = errno;
  (void)!::write(start.problem, &problem, sizeof(problem));
  ::_exit(127);
}

/// The text of a file below /proc; what was read so far if the process ends meanwhile, when read
/// fails with ESRCH. A std::ifstream would throw.
std::string process_text(const std::string& path) {
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> bytes;
  while (file) {
    const ssize_t got = ::read(file.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(bytes.data(), static_cast<size_t>(got));
  }
  return text;
}

/// Parent of a process, from the fourth field of /proc/PID/stat; nothing if the process has ended.
std::optional<pid_t> parent_of(pid_t process) {
  const std::string text = process_text(fmt::format("/proc/{}/stat", process));
  const size_t name_end = text.rfind(')');  // the last ')': the name may hold any characters
  if (name_end == text.npos || name_end + 4 >= text.size()) return std::nullopt;
  const char state = text[name_end + 2];
  if (state == 'Z' || state == 'X') return std::nullopt;
  const size_t begin = name_end + 4;
  return parse_number<pid_t>(text.substr(begin, text.find(' ', begin) - begin));
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::map<std::string, std::string>& environment,
                           const std::string& working_folder,
                           const std::function<void(const ChildProcess&)>& before_start,
                           Input input) {
  Pipe output = make_pipe();
  Pipe errors = make_pipe();
  Pipe go = make_pipe();
  Pipe problem = make_pipe();
  set_non_blocking(output.read);
  set_non_blocking(errors.read);
  OwnedFd nothing;
  if (input == Input::kNone) {
    nothing = OwnedFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    LS_CHECK(nothing, Error, "[launch] /dev/null cannot be opened: {}.", std::strerror(errno));
  }
  const std::vector<std::string> variables = merged(environment);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> entries = pointers(variables);
  const Start start{arguments.data(),
                    entries.data(),
                    working_folder.empty() ? nullptr : working_folder.c_str(),
                    ::getpid(),
                    nothing ? nothing.get() : -1,
                    output.write.get(),
                    errors.write.get(),
                    go.read.get(),
                    problem.write.get()};
  const pid_t child = ::fork();
  if (child == 0) run_child(start);
  LS_CHECK(child > 0, OutOfMemoryError, "[launch] no new process: {}.", std::strerror(errno));
  pid_ = child;
  (void)::setpgid(child, child);  // in parent and child, to avoid a race
  output.write.reset();
  errors.write.reset();
  problem.write.reset();
  output_ = std::move(output.read);
  errors_ = std::move(errors.read);
  try {
    handle_ = OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    LS_CHECK(handle_, Error, "[launch] no handle of a process: {}. Linux 5.3 has it.",
             std::strerror(errno));
    if (before_start) before_start(*this);
    (void)!::write(go.write.get(), "", 1);  // the child holds the other end
    int reason = 0;
    const bool failed = read_from(problem.read.get(), &reason, sizeof(reason));
    LS_CHECK(!failed, ConfigError, "[launch] {} cannot be started{}: {}.", command[0],
             working_folder.empty() ? "" : " in " + working_folder, std::strerror(reason));
  } catch (...) {
    signal_group(SIGKILL);
    wait();
    throw;
  }
}

ChildProcess::~ChildProcess() {
  if (status_) return;
  signal_group(SIGKILL);
  wait();
}

void ChildProcess::signal(int signal) const {
  if (!status_) (void)::kill(pid_, signal);
}

void ChildProcess::signal_group(int signal) const {
  if (!status_) (void)::kill(-pid_, signal);
}

bool ChildProcess::catches(int signal) const {
  if (status_) return false;
  const std::string text = process_text(fmt::format("/proc/{}/status", pid_));
  const size_t at = text.find("SigCgt:");
  if (at == text.npos) return false;
  const uint64_t caught = std::strtoull(text.c_str() + at + 7, nullptr, 16);
  return ((caught >> (signal - 1)) & 1) != 0;
}

int ChildProcess::wait() {
  if (status_) return *status_;
  int status = 0;
  pid_t got = 0;
  do {
    got = ::waitpid(pid_, &status, 0);
  } while (got < 0 && errno == EINTR);
  LS_ASSERT(got == pid_);
  status_ = status;
  handle_.reset();
  return status;
}

std::vector<pid_t> descendants(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc", error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    if (const auto pid = parse_number<pid_t>(entry->path().filename().string())) {
      if (const auto parent = parent_of(*pid)) children.emplace(*parent, *pid);
    }
    entry.increment(error);  // the iterator's own ++ would throw
  }
  std::vector<pid_t> found;
  const auto add_children = [&](pid_t parent) {
    const auto [first, last] = children.equal_range(parent);
    for (auto each = first; each != last; ++each) found.push_back(each->second);
  };
  add_children(ancestor);
  for (size_t i = 0; i < found.size(); ++i) add_children(found[i]);
  return found;
}

std::string program_of(pid_t process) {
  std::error_code ignored;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process), ignored).string();
}

bool is_stopped(pid_t process) {
  const std::string text = process_text(fmt::format("/proc/{}/stat", process));
  const size_t name_ends = text.rfind(") ");
  return name_ends != text.npos && text.substr(name_ends + 2, 1) == "T";
}

OrphanKeeper::OrphanKeeper() {
  LS_CHECK(
      ::prctl(PR_GET_CHILD_SUBREAPER, &before_) == 0 && ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0,
      Error, "[launch] the system gives no orphans to us: {}.", std::strerror(errno));
}

OrphanKeeper::~OrphanKeeper() { (void)::prctl(PR_SET_CHILD_SUBREAPER, before_); }

int OrphanKeeper::kill_descendants() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(2);
  int first_count = -1;
  // Repeats, since a process may have forked in the meantime.
  for (;;) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::vector<pid_t> found = descendants(::getpid());
    if (first_count < 0) first_count = static_cast<int>(found.size());
    if (found.empty() || Clock::now() > deadline) return first_count;
    for (const pid_t pid : found) (void)::kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace lockstep::launcher
