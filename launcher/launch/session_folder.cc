#include "launcher/launch/session_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/check.h"
#include "dist/rendezvous/socket.h"

namespace lockstep::launcher {
namespace {

namespace fs = std::filesystem;

/// With the host's name: on other hosts of a job mpirun's daemons use a folder of the same name,
/// which nobody locks there.
std::string name_begin() {
  return fmt::format("lockstep-launch.{}.{}.", dist::host_name(), ::geteuid());
}

OwnedFd open_folder(const fs::path& path) {
  return OwnedFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_ours(const OwnedFd& folder) {
  struct stat found {};
  return ::fstat(folder.get(), &found) == 0 && found.st_uid == ::geteuid();
}

void remove_abandoned(const fs::path& base) {
  std::error_code ignored;
  std::vector<fs::path> candidates;
  for (fs::directory_iterator entry(base, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (entry->path().filename().string().starts_with(name_begin())) {
      candidates.push_back(entry->path());
    }
  }
  for (const fs::path& path : candidates) {
    const OwnedFd folder = open_folder(path);
    if (!folder || !is_ours(folder) || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    fs::remove_all(path, ignored);
  }
}

}  // namespace

SessionFolder::SessionFolder(const fs::path& base) {
  remove_abandoned(base);
  std::string name = (base / (name_begin() + "XXXXXX")).string();
  LS_CHECK(
      ::mkdtemp(name.data()) != nullptr, DataError,
      "[launch] no folder for the session of mpirun in {}: {}. Set TMPDIR to a folder that can "
      "be written.",
      base.string(), std::strerror(errno));
  path_ = name;
  lock_ = open_folder(path_);
  // Without the lock, which some file systems lack, another launch may take it for abandoned.
  LS_CHECK(lock_ && ::flock(lock_.get(), LOCK_SH | LOCK_NB) == 0, DataError,
           "[launch] the folder {} cannot be locked: {}. Set TMPDIR to a folder of a local disk.",
           path_.string(), std::strerror(errno));
}

SessionFolder::~SessionFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace lockstep::launcher
