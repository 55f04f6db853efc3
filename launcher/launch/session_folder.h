#pragma once

#include <filesystem>

#include "core/base/owned_fd.h"

namespace lockstep::launcher {

/// A folder for the session files of one mpirun, which no other user can read or have made before:
/// its name is random and its mode 0700. Open MPI's own folder, /tmp/ompi.HOST.UID, has a name that
/// anyone may take. While the object or a process forked with it lives the folder is locked.
class SessionFolder {
 public:
  /// Makes the folder in `base`, and removes those of this user and host there that no process
  /// holds any more. Throws DataError if it cannot be made.
  explicit SessionFolder(const std::filesystem::path& base);
  /// Removes the folder with all that is in it.
  ~SessionFolder();
  SessionFolder(const SessionFolder&) = delete;
  SessionFolder& operator=(const SessionFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  OwnedFd lock_;
};

}  // namespace lockstep::launcher
