#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace lockstep {

/// The contents of a file, mapped read-only: pages are read on first access, and processes that map
/// the same file share them. Copies share the mapping. Empty files are fine. If the file is
/// truncated while it is mapped, access past its new end raises SIGBUS.
class MappedFile {
 public:
  /// Throws DataError naming the path and the system's reason if it is missing, unreadable or not
  /// a regular file.
  explicit MappedFile(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Shared ownership of the mapping, to keep it alive.
  std::shared_ptr<const void> owner() const { return owner_; }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace lockstep
