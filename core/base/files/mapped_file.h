#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace lockstep {

/// The contents of a file, mapped read-only: pages are read on first access, and processes that map
/// the same file share them. Copies share the mapping. Empty files are fine.
///
/// Bytes that can no longer be read, because the file was shortened or its disk failed, read as
/// zeros instead of ending the process (SIGBUS): readers call `check_mapped` after they read. For
/// that, the first object installs a handler of SIGBUS, which passes on what it does not know.
class MappedFile {
 public:
  /// Throws FileError (core/base/files/regular_file.h) naming path and reason if the file is
  /// missing, unreadable, not a regular file or larger than kMostMappedBytes.
  explicit MappedFile(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Shared ownership of the mapping, to keep it alive.
  std::shared_ptr<const void> owner() const { return owner_; }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

/// Throws DataError naming the file if `address` lies in a MappedFile whose bytes could not all be
/// read, or that is shorter now than when it was mapped. Does nothing for other addresses.
/// Thread-safe.
void check_mapped(const void* address);

}  // namespace lockstep
