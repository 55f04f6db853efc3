#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "core/base/files/file_descriptor.h"

namespace lockstep {

/// Writes a file that appears under its name complete or not at all, even if the machine stops in
/// between. The contents go to a temporary file beside the destination, which is synced and renamed
/// over the destination; then the folder is synced. Every failure throws DataError naming the path
/// and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path destination);
  /// Without a previous `publish()`, removes the temporary file and leaves the destination
  /// unchanged.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Starts writing to disk at once, so that `publish` has little left to wait for.
  void write(std::span<const std::byte> bytes);
  /// Replaces the destination by the contents written so far. Call once, last.
  void publish();

 private:
  std::filesystem::path destination_;
  FileDescriptor file_;
  bool published_ = false;
};

/// Replaces the contents of `path` by `content` as AtomicFile does.
void write_text(const std::filesystem::path& path, std::string_view content);

/// Removes the temporary files of AtomicFile in `folder` whose processes, of this machine, have
/// ended: a killed process leaves them. Throws DataError if one cannot be removed.
void remove_stale_partials(const std::filesystem::path& folder);

}  // namespace lockstep
