#include "train/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <system_error>

#include "core/base/check.h"
#include "core/base/regular_file.h"

namespace lockstep::train {

namespace {

/// Largest lock file: name of a host, number of a process.
constexpr uint64_t kMostOwnerBytes = 4096;

std::string owner() {
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return fmt::format("host {}, pid {}", host, ::getpid());
}

}  // namespace

RunLock::RunLock(const RunDirectory& directory) : file_(directory.lock(), O_RDWR | O_CREAT) {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    const int code = errno;
    LS_CHECK(code == EWOULDBLOCK, DataError, "[run directory] {} cannot be locked: {}.",
             file_.path().string(), std::generic_category().message(code));
    throw ConfigError(fmt::format(
        "[run directory] {}: a run is there already ({}). Wait for it, stop it, or name another "
        "folder.",
        directory.path().string(), read_whole_file(file_.path(), kMostOwnerBytes)));
  }
  file_.truncate(0);
  const std::string text = owner();
  file_.write(std::as_bytes(std::span(text)));
}

}  // namespace lockstep::train
