#include "train/report/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <system_error>
#include <thread>

#include "core/base/check.h"
#include "core/base/files/folders.h"

namespace lockstep::train {

namespace {

/// Largest lock file: name of a host, number of a process.
constexpr uint64_t kMostOwnerBytes = 4096;

/// Follows the holder in run.lock once it has ended by itself.
constexpr const char* kEndedByItself = ", ended";

std::string owner_text() {
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return fmt::format("host {}, pid {}", host, ::getpid());
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Tries to lock; returns 0 or the error's code.
int try_lock(const FileDescriptor& file, int kind) {
  while (::flock(file.get(), kind | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// As try_lock, but waits a moment for RunLock::holder, which locks in order to ask.
int lock(const FileDescriptor& file) {
  constexpr int kAttempts = 20;
  int code = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    code = try_lock(file, LOCK_EX);
    if (code != EWOULDBLOCK) return code;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return code;
}

/// Whether a file system has no locks on folders (NFS wants them open for writing).
bool cannot_lock_folders(int code) {
  return code == EBADF || code == ENOLCK || code == EOPNOTSUPP || code == EINVAL || code == ENOSYS;
}

void rewrite(FileDescriptor& file, std::span<const std::byte> bytes) {
  file.truncate(0);
  LS_CHECK(::lseek(file.get(), 0, SEEK_SET) == 0, DataError, "[run directory] {}: {}.",
           file.path().string(), std::generic_category().message(errno));
  file.write(bytes);
}

void check(int code, const FileDescriptor& locked) {
  LS_CHECK(code == 0, DataError, "[run directory] {} cannot be locked: {}.", locked.path().string(),
           std::generic_category().message(code));
}

}  // namespace

RunLock::RunLock(const RunDirectory& directory, int flags)
    : folder_(directory.path(), O_RDONLY | O_DIRECTORY),
      file_(directory.lock(), flags),
      owner_(owner_text()) {
  read_file();
}

RunLock::RunLock(const RunDirectory& directory) : RunLock(directory, O_RDWR | O_CREAT) {
  if (!try_to_lock()) {
    throw ConfigError(fmt::format(
        "[run directory] {}: a run is there already ({}). Wait for it, stop it, or name another "
        "folder.",
        directory.path().string(),
        before_.empty() ? "which one is not known: its run.lock was removed" : text_of(before_)));
  }
  rewrite(file_, std::as_bytes(std::span(owner_)));
  is_noted_ = true;
}

std::unique_ptr<RunLock> RunLock::inherit(const RunDirectory& directory, const std::string& owner) {
  std::unique_ptr<RunLock> lock(new RunLock(directory, O_RDWR));
  if (!lock->try_to_lock()) return nullptr;
  lock->read_file();  // another one may have locked it since it was read
  if (text_of(lock->before_) != owner) return nullptr;
  rewrite(lock->file_, std::as_bytes(std::span(lock->owner_)));
  lock->is_noted_ = true;
  return lock;
}

RunLock::~RunLock() {
  if (!is_noted_) return;
  try {
    const std::string text = owner_ + kEndedByItself;
    rewrite(file_, std::as_bytes(std::span(text)));
  } catch (const DataError&) {
    // Then this process looks as if it had been killed.
  }
}

void RunLock::read_file() {
  struct stat status {};
  LS_CHECK(::fstat(file_.get(), &status) == 0 && ::lseek(file_.get(), 0, SEEK_SET) == 0, DataError,
           "[run directory] {}: {}.", file_.path().string(),
           std::generic_category().message(errno));
  times_before_[0] = status.st_atim;
  times_before_[1] = status.st_mtim;
  before_ = file_.read_to_end();
}

bool RunLock::try_to_lock() {
  const int of_folder = lock(folder_);
  const int of_file = of_folder == EWOULDBLOCK ? EWOULDBLOCK : lock(file_);
  if (of_file == EWOULDBLOCK) return false;
  if (!cannot_lock_folders(of_folder)) check(of_folder, folder_);
  check(of_file, file_);
  return true;
}

void RunLock::leave_no_trace() {
  is_noted_ = false;
  if (before_.empty()) return;
  rewrite(file_, before_);
  (void)::futimens(file_.get(), times_before_);
}

bool RunLock::has_ended(const RunDirectory& directory) {
  return text_of(FileDescriptor(directory.lock(), O_RDONLY).read_to_end())
      .ends_with(kEndedByItself);
}

std::optional<std::string> RunLock::holder(const RunDirectory& directory) {
  std::string why = "was removed";
  try {
    FileDescriptor file(directory.lock(), O_RDONLY);
    const int code = try_lock(file, LOCK_SH);
    if (code == EWOULDBLOCK) return text_of(file.read_to_end());
  } catch (const DataError& error) {
    if (name_exists(directory.lock())) why = fmt::format("cannot be read ({})", error.what());
  }
  const FileDescriptor folder(directory.path(), O_RDONLY | O_DIRECTORY);
  if (try_lock(folder, LOCK_SH) == EWOULDBLOCK) {
    return fmt::format("a process that is not known: its run.lock {}", why);
  }
  return std::nullopt;
}

}  // namespace lockstep::train
