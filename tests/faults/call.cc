#include "tests/faults/call.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace lockstep::faults {
namespace {

namespace fs = std::filesystem;

struct NamedAction {
  std::string_view name;
  Action action;
  int code;
};

constexpr std::array<NamedAction, 11> kActions = {{{"kill", Action::kKill, 0},
                                                   {"kill_after", Action::kKillAfter, 0},
                                                   {"half", Action::kHalf, 0},
                                                   {"short", Action::kShort, 0},
                                                   {"enospc", Action::kFail, ENOSPC},
                                                   {"eio", Action::kFail, EIO},
                                                   {"erofs", Action::kFail, EROFS},
                                                   {"eintr", Action::kFail, EINTR},
                                                   {"eacces", Action::kFail, EACCES},
                                                   {"estale", Action::kFail, ESTALE},
                                                   {"enospc_from", Action::kFullDisk, ENOSPC}}};

/// Writes in one system call, bypassing the interposed write, so that lines of threads do not mix.
void write_past(int fd, const std::string& text) {
  if (::syscall(SYS_write, fd, text.data(), text.size()) != static_cast<long>(text.size())) {
    ::_exit(99);
  }
}

[[noreturn]] void refuse(const std::string& problem) {
  write_past(STDERR_FILENO, "file_faults: " + problem + "\n");
  ::_exit(99);
}

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct Settings {
  std::string folder;
  int64_t at = 0;
  NamedAction action = {"", Action::kNone, 0};
  int count_file = -1;
  int record_file = -1;
  bool reads = false;
};

/// Counts the functions of this library on the stack that look for a path: their own calls are none
/// of the program's.
thread_local int looking = 0;

struct Looking {
  Looking() { ++looking; }
  ~Looking() { --looking; }
};

/// Absolute path without links, ".", ".." and trailing slashes; the file need not exist.
std::string without_links(const fs::path& path) {
  std::error_code failed;
  const fs::path absolute = fs::absolute(path, failed);
  std::string text = fs::weakly_canonical(absolute, failed).string();
  if (failed) text = absolute.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

Settings read_settings() {
  Settings settings;
  const std::string folder = setting("FILE_FAULTS_FOLDER");
  if (folder.empty()) refuse("FILE_FAULTS_FOLDER names no folder");
  settings.folder = without_links(folder);

  settings.reads = !setting("FILE_FAULTS_READS").empty();
  if (const std::string at = setting("FILE_FAULTS_AT"); !at.empty()) {
    char* end = nullptr;
    settings.at = std::strtoll(at.c_str(), &end, 10);
    if (settings.at < 1 || *end != '\0') refuse("FILE_FAULTS_AT=" + at + " is no number from 1");
    const std::string name = setting("FILE_FAULTS_ACTION");
    const auto* found = std::ranges::find(kActions, name, &NamedAction::name);
    if (found == kActions.end()) refuse("FILE_FAULTS_ACTION=" + name + " is no action");
    settings.action = *found;
  }
  const auto log = [](const char* name) {
    const std::string file = setting(name);
    if (file.empty()) return -1;
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    const auto fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, file.c_str(), kFlags, 0644));
    if (fd < 0) refuse(file + ": " + std::strerror(errno));
    return fd;
  };
  settings.count_file = log("FILE_FAULTS_COUNT");
  settings.record_file = log("FILE_FAULTS_RECORD");
  return settings;
}

/// Never destroyed: calls are made until the process ends.
const Settings& settings() {
  const Looking here;
  static const Settings& kSettings = *new Settings(read_settings());
  return kSettings;
}

std::atomic<int64_t> calls = 0;

bool is_counted(std::string_view path) {
  const std::string& folder = settings().folder;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

/// Reads the target of the link /proc/self/fd/FD into `target`.
std::string_view link_of(int fd, std::array<char, PATH_MAX>& target) {
  std::array<char, 64> link;
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(link.data(), target.data(), target.size());
  return {target.data(), length < 0 ? 0 : static_cast<size_t>(length)};
}

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

}  // namespace

bool counts_reads() { return looking == 0 && settings().reads; }

std::string path_of(int fd) {
  const Looking here;
  const ErrnoGuard guard;
  std::array<char, PATH_MAX> target;
  const std::string_view path = link_of(fd, target);
  return is_counted(path) ? std::string(path) : std::string();
}

std::string path_at(int folder, const char* path) {
  const Looking here;
  const ErrnoGuard guard;
  if (path == nullptr || path[0] == '\0') return "";
  fs::path full = path;
  if (folder != AT_FDCWD && full.is_relative()) {
    std::array<char, PATH_MAX> target;
    full = fs::path(link_of(folder, target)) / full;
  }
  if (!full.has_filename()) full = full.parent_path();
  full = fs::absolute(full);
  const std::string name = without_links(full.parent_path()) + "/" + full.filename().string();
  return is_counted(name) ? name : "";
}

Call::Call(const char* name, const std::string& path, Kind kind) {
  if (path.empty()) return;
  const Looking here;
  const NamedAction& chosen = settings().action;
  const int64_t number = ++calls;
  if (settings().count_file >= 0) {
    const ErrnoGuard guard;
    write_past(settings().count_file, std::to_string(number) + " " + name + " " + path + "\n");
  }
  const bool full_disk = chosen.action == Action::kFullDisk;
  const bool hit =
      full_disk ? number >= settings().at && kind != Kind::kOther : number == settings().at;
  if (!hit) return;
  action_ = chosen.action;
  const bool half_of_nothing = action_ == Action::kHalf && kind != Kind::kWrite;
  if (action_ == Action::kKill || half_of_nothing) die();
  if (fails()) errno = chosen.code;
}

void Call::finish() const {
  if (action_ == Action::kKillAfter || action_ == Action::kHalf) die();
}

void record(const char* operation, const std::string& path, const std::string& other, off_t offset,
            const void* bytes, size_t size) {
  if (path.empty() || settings().record_file < 0) return;
  const ErrnoGuard guard;
  std::string text = std::string(operation) + "\t" + path + "\t" + other + "\t" +
                     std::to_string(offset) + "\t" + std::to_string(size) + "\n";
  if (size > 0) text.append(static_cast<const char*>(bytes), size);
  write_past(settings().record_file, text);
}

}  // namespace lockstep::faults
