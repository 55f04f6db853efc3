#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace lockstep {

/// The contents of a file, mapped read-only: pages are read when they are first looked at, and
/// processes that map the same file share them. Copies share the mapping. Empty files are fine.
/// Whoever shortens the file while it is mapped ends the program with SIGBUS.
class MappedFile {
 public:
  /// Throws DataError naming the path and the system's reason if it is missing, unreadable or not
  /// a regular file.
  explicit MappedFile(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Keeps the mapping alive.
  std::shared_ptr<const void> owner() const { return owner_; }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace lockstep
