#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace lockstep {

/// The contents of a file, mapped read-only: processes that map the same file share its pages.
/// Copies share the mapping. Empty files are fine. If the file is truncated while it is mapped,
/// access past its new end raises SIGBUS.
class MappedFile {
 public:
  /// When pages are read: each on first access, or all now, which is faster if all are used.
  enum class Pages : uint8_t { kReadOnAccess, kReadAtOnce };

  /// Throws FileError (core/base/regular_file.h) naming path and reason if the file is missing,
  /// unreadable, not a regular file or larger than kMostMappedBytes.
  explicit MappedFile(const std::filesystem::path& path, Pages pages = Pages::kReadOnAccess);

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Shared ownership of the mapping, to keep it alive.
  std::shared_ptr<const void> owner() const { return owner_; }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace lockstep
