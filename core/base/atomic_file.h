#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "core/base/file_descriptor.h"

namespace lockstep {

/// A file that appears under its name whole or not at all, even if the machine stops in between.
/// It is written beside its destination, synced, renamed over it, and the folder is synced.
/// Every failure throws DataError naming the path and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path destination);
  /// Without a `publish()` before, removes what was written; the destination is as it was.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// The disk starts on what is written at once, so that little is left for `publish` to wait for.
  void write(std::span<const std::byte> bytes);
  /// Makes the contents so far the destination's. Call once, last.
  void publish();

 private:
  std::filesystem::path destination_;
  FileDescriptor file_;
  bool published_ = false;
};

/// Replaces the contents of `path` by `content` as AtomicFile does.
void write_text(const std::filesystem::path& path, std::string_view content);

}  // namespace lockstep
