#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/files/regular_file.h"

namespace lockstep {

/// The lines of a text file from the last to the first, for files that grow at their end: only what
/// is asked for is read, in blocks of 64 KiB. Not thread-safe.
class LinesFromEnd {
 public:
  /// Opens the file. What is written to it later is not read. Throws FileError.
  explicit LinesFromEnd(const std::filesystem::path& path);

  /// Returns the line before the last one returned, without its newline; nullopt before the first
  /// line. Throws FileError.
  std::optional<std::string> next();
  /// Whether the line returned last had a newline: only a file's last line may lack it.
  bool was_whole() const noexcept { return was_whole_; }

 private:
  /// Puts the block before those read so far in front of `text_`.
  void read_block();

  RegularFile file_;
  uint64_t begin_;    ///< offset of `text_` in the file
  std::string text_;  ///< read, and not returned
  bool was_whole_ = true;
};

}  // namespace lockstep
